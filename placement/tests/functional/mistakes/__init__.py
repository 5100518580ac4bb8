"""Mistakes of operators: the service and the commands report each one in one line."""
