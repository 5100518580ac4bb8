"""The commands `placement-manage export` and `placement-manage import`.

`kinds` derives the lines of a file from the tables, and reads and checks them. `export` writes a
file, and `load` imports it.
"""
