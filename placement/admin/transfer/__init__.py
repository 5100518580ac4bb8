"""The commands `placement-manage export` and `placement-manage import`.

`model` defines the lines of a file, and `tables` their rows in the database. An export is written
by `export`, and an import by `load`.
"""
