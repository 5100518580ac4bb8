"""JSON schemas of request bodies and query strings; the modules have the names of the handlers."""
