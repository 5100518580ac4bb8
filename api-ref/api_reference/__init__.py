"""The documentation of the API that is generated from the operations of the service.

The directory `api-ref` must be on the path of modules. The service does not import this package,
and the distribution does not contain it.
"""
