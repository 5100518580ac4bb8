"""Measure the cost of requests on reproducible data.

`tox -e perf` prints a table of the costs. `tools.perf.scale` measures how the cost grows with the
size of the data, and `tools.perf.plot` draws diagrams of these measurements.
"""
