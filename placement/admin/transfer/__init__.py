"""The commands `placement-manage export` and `placement-manage import`.

`kinds` derives the lines of a file from the tables, `document` reads and checks them, and
`database` reads the rows. `export` writes a file, and `load` imports it.
"""
