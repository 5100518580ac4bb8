"""OpenAPI documents from the operations (`api_reference.operations`).

`document` describes one microversion, with the recorded examples. `combined` describes all of them,
in the form that the code generators of OpenStack read. `files` writes both as YAML:
`python api-ref/write_openapi.py DIRECTORY`.

The combined document and the document of the latest microversion are committed, in the directory
`placement/openapi`, from which the distribution contains them. Their diff shows what changes in the
API.
"""
