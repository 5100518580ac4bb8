"""Random requests from a seed, and what they cost a worker: see `__main__`."""
