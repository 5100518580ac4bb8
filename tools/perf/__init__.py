"""Measure the service and its commands on reproducible data.

`measure` is the program. It fills databases with `worlds` and sends the requests of `scenarios`.
`table` prints the tables of doc/source/admin/performance.rst from its results.
"""
