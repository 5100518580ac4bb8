r"""JSON schemas and patterns that the requests of several operations have in common.

In JSON Schema, a pattern can match any part of a string, so each pattern is anchored at both ends.
The end anchor is ``\Z``, because ``$`` would allow a trailing newline.

The descriptions of properties are in the directory `api-ref`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Schema = Mapping[str, Any]

# For parameters of query strings that can have any text.
TEXT: Schema = {'type': 'string'}
UUID: Schema = {'type': 'string', 'format': 'uuid'}
# For `patternProperties`, which selects keys by a pattern and not by a format.
UUID_KEY = r'^[0-9a-fA-F-]{36}\Z'
# For query strings. Unlike bodies, they must contain UUIDs with hyphens.
HYPHENATED_UUID: Schema = {
    'type': 'string',
    'pattern': r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z',
    'description': 'a UUID with hyphens',
}

RESOURCE_CLASS_NAME = r'^[A-Z0-9_]+\Z'
# The name of a custom trait or of a custom resource class.
CUSTOM_NAME: Schema = {'type': 'string', 'pattern': r'^CUSTOM_[A-Z0-9_]+\Z', 'maxLength': 255}

# For projects, users and traits.
IDENTIFIER: Schema = {'type': 'string', 'minLength': 1, 'maxLength': 255}
GENERATION: Schema = {'type': 'integer'}
PROVIDER_NAME: Schema = {'type': 'string', 'maxLength': 200}
# Any form of a UUID that fits the column is valid. Placement stores it unchanged.
AGGREGATE: Schema = {**UUID, 'maxLength': 36}


def closed(
    properties: Mapping[str, Schema], required: Iterable[str] | None = None
) -> dict[str, Any]:
    """Return the schema of an object that has no other than the given properties.

    :param required: the names of the properties that an object must have; by default, all
    """
    return {
        'type': 'object',
        'properties': properties,
        'required': list(properties if required is None else required),
        'additionalProperties': False,
    }


def keyed(keys: str, values: Schema, **others: Any) -> dict[str, Any]:
    """Return the schema of an object whose keys match a pattern.

    :param values: the schema of the values
    :param others: additional keywords of the schema
    """
    return {
        'type': 'object',
        **others,
        'patternProperties': {keys: values},
        'additionalProperties': False,
    }
