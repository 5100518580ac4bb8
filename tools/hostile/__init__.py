"""Send random requests to a worker process and check the responses; see `__main__`."""
