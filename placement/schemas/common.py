"""Pieces that several schemas are made of.

Patterns are searched for in a text, so each one says where it begins and ends. The end is
``\\Z``: ``$`` would let a trailing newline through.
"""

UUID = {'type': 'string', 'format': 'uuid'}
# Keys of objects are matched by pattern only.
UUID_KEY = r'^[0-9a-fA-F-]{36}\Z'
# Query strings are strict about the hyphens, bodies are not.
HYPHENATED_UUID = r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z'

RESOURCE_CLASS_NAME = r'^[A-Z0-9_]+\Z'
CUSTOM_NAME = r'^CUSTOM_[A-Z0-9_]+\Z'

GENERATION = {'type': 'integer'}
# Projects, users and traits.
IDENTIFIER = {'type': 'string', 'minLength': 1, 'maxLength': 255}

# The largest integer that a column of the database holds.
MAX_INT = 2147483647
