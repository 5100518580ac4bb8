"""JSON schemas of the bodies of requests and responses, in one module for each entity.

The schemas of query strings are derived from the parameters in `placement.operations`.
"""
