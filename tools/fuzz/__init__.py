"""Random requests that schemathesis generates from the OpenAPI documents of the API.

`known` restricts a document to the values of a small cloud, so that many requests succeed.
`session` sends requests and compares the responses with the document and with the declarations.
`service` starts the service on a private database server. ``python -m tools.fuzz`` uses all three.
"""
