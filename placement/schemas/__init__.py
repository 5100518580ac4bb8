"""JSON schemas of request bodies and query strings, in one module for each handler module."""
