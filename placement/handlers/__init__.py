"""HTTP handlers, in one module for each entity.

`placement.operations` declares the handler of each operation. The checks of a request that it
declares come first. Then the handler calls one function and builds the response.
"""
