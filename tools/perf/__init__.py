"""What the requests of the service cost, on clouds that are the same each time.

`tox -e perf` prints a table; `tools.perf.scale` measures how cost grows, and `tools.perf.plot`
draws what it found.
"""
