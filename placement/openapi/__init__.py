"""OpenAPI documents from the declarations of the operations (`placement.operations`).

`document` describes one microversion, with the recorded examples. `combined` describes all of them,
in the form that the code generators of OpenStack read. `files` writes both as YAML:
`python -m placement.openapi DIRECTORY`. The service does not import this package.

Only the combined document is committed, as `placement.yaml`. Its diff shows what changes in the
API.
"""
