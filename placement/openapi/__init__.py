"""The OpenAPI documents of the API, which `tools/openapi.py` generates.

`placement-1.N.yaml` describes microversion 1.N. `placement.yaml` describes all microversions.
"""
