r"""Parts of several schemas.

A pattern matches anywhere in a text, so each one has anchors for the beginning and the end. The
anchor of the end is ``\Z``, because ``$`` would allow a trailing newline.
"""

UUID = {'type': 'string', 'format': 'uuid'}
# JSON Schema supports patterns, but not formats, for the keys of objects.
UUID_KEY = r'^[0-9a-fA-F-]{36}\Z'
# Query strings require the hyphens, bodies do not.
HYPHENATED_UUID = r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z'

RESOURCE_CLASS_NAME = r'^[A-Z0-9_]+\Z'
CUSTOM_NAME = r'^CUSTOM_[A-Z0-9_]+\Z'

GENERATION = {'type': 'integer'}
# Projects, users and traits.
IDENTIFIER = {'type': 'string', 'minLength': 1, 'maxLength': 255}
