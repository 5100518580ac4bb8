"""Measure the service and its commands on reproducible data.

`measure` is the program. It fills databases with `worlds` and sends the requests of `scenarios`.
From its results, `table` prints the data of doc/source/admin/performance.rst, which `plots` draws.
"""
