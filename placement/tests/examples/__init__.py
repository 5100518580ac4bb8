"""Examples of the documentation, which are recorded from the requests of gabbi files.

`normalize` replaces values that differ from run to run, `layout` formats JSON, `recording` records
one request and its response, and `collection` turns recordings into files. `handlers` defines the
key `response_example` of the gabbi files, which compares a request and its response with the files.
`placement.tests.functional.examples.recorder` sends the requests.
"""
