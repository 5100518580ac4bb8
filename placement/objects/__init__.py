"""The entities of the service: plain data, and functions that read and write them.

Allocations are written by `placement.claims`.
"""
