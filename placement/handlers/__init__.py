"""HTTP handlers, one module for each entity: authorize, parse, call one function, reply."""
