"""The tables of the API reference, derived from the declarations of the operations.

The modules do not depend on Sphinx.
"""
