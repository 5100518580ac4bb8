"""Measures the cost of requests on reproducible data.

`tox -e perf` prints a table. `tools.perf.scale` measures how the cost grows with the data, and
`tools.perf.plot` draws the results.
"""
