"""Changes that a command assumes: the option `--assume`.

`private_copy` fills a database in memory with the providers and their usage, and `apply` makes the
changes there. The commands read the database in memory as they read the database of the service. So
the changes need no code in `explain`, `headroom`, and `drain`. `placement.cmd.assume` parses them.
"""
