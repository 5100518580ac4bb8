"""OpenAPI documents from the declarations of the operations (`placement.operations`).

`document` describes one microversion. `combined` describes all of them, in the form that the code
generators of OpenStack read. Neither module reads or writes files: `tools/openapi.py` does.
"""
