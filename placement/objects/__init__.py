"""The entities of the API: data classes, and functions that read and write the entities.

This package only reads allocations. The package `placement.claims` writes them.
"""
