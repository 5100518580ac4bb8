"""HTTP handlers, in one module for each entity.

A handler checks the policy, parses the request, calls one function and builds the response.
"""
