"""Sends random requests to a worker process and checks the responses: see `__main__`."""
