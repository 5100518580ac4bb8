r"""Schemas and patterns that several schema modules use.

In JSON Schema, a pattern can match any part of a string, so each pattern is anchored at both ends.
The end anchor is ``\Z``, because ``$`` would allow a trailing newline.
"""

UUID = {'type': 'string', 'format': 'uuid'}
# For `patternProperties`, which selects keys by a pattern and not by a format.
UUID_KEY = r'^[0-9a-fA-F-]{36}\Z'
# For query strings. Unlike bodies, they must contain UUIDs with hyphens.
HYPHENATED_UUID = r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z'

RESOURCE_CLASS_NAME = r'^[A-Z0-9_]+\Z'
CUSTOM_NAME = r'^CUSTOM_[A-Z0-9_]+\Z'

GENERATION = {'type': 'integer'}
# For projects, users and traits.
IDENTIFIER = {'type': 'string', 'minLength': 1, 'maxLength': 255}
