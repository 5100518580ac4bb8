"""Check that a code generator can use the OpenAPI documents: ``tox -e clients``.

`generation` generates clients, `client` calls their functions, and `use` registers a cloud, claims
resources, and releases them. The generator is openapi-python-client.
"""
