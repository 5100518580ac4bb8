r"""Schemas and patterns that several schema modules use.

In JSON Schema, a pattern can match any part of a string, so each pattern is anchored at both ends.
The end anchor is ``\Z``, because ``$`` would allow a trailing newline.

Every property has a description. The API reference and the OpenAPI documents contain it.
"""

from typing import Any

# For parameters of query strings that can have any text.
TEXT = {'type': 'string'}
UUID = {'type': 'string', 'format': 'uuid'}
# For `patternProperties`, which selects keys by a pattern and not by a format.
UUID_KEY = r'^[0-9a-fA-F-]{36}\Z'
# For query strings. Unlike bodies, they must contain UUIDs with hyphens.
HYPHENATED_UUID = r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z'
# The forms that the format `uuid` of request bodies allows: a UUID in any letter case, with hyphens
# at any position, prefixes and braces. The documents state the pattern, because other validators
# require hyphens.
UUID_FORMS = '(urn:|uuid:|[{}])*-*([0-9a-fA-F]-*){32}[{}]*'
ANY_UUID = rf'^{UUID_FORMS}\Z'
PADDED_UUID = rf'^\s*{UUID_FORMS}\s*\Z'
UUID_PATTERNS = (HYPHENATED_UUID, ANY_UUID, PADDED_UUID)

RESOURCE_CLASS_NAME = r'^[A-Z0-9_]+\Z'
CUSTOM_NAME = r'^CUSTOM_[A-Z0-9_]+\Z'

# For projects, users and traits.
IDENTIFIER = {'type': 'string', 'minLength': 1, 'maxLength': 255}

GENERATION = {
    'type': 'integer',
    'description': (
        'The generation of the resource provider. If it does not match the stored generation, the '
        'request fails with 409 Conflict.'
    ),
}


# Responses ----------------------------------------------------------------------


def closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema of an object that has exactly the given properties.

    :param optional: the names of the properties that an object can omit
    """
    return {
        'type': 'object',
        'properties': properties,
        'required': [name for name in properties if name not in optional],
        'additionalProperties': False,
    }


def described(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has exactly the given properties, with a description."""
    return {**closed(properties), 'description': description}


def keyed(keys: str, values: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the schema of an object whose keys match a pattern.

    :param keys: the pattern of the keys
    :param values: the schema of the values
    :param others: additional keywords of the schema
    """
    return {
        'type': 'object',
        'patternProperties': {keys: values},
        'additionalProperties': False,
        **others,
    }


def array(items: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the schema of an array.

    :param others: additional keywords of the schema
    """
    return {'type': 'array', 'items': items, **others}


def links(*relations: str) -> dict[str, Any]:
    """Return the schema of `links` with one link for each relation."""
    link = closed(
        {
            'rel': {
                'type': 'string',
                'enum': list(relations),
                'description': 'The relation of the linked resource to this object.',
            },
            'href': {
                'type': 'string',
                'description': (
                    'The path of the linked resource. It begins with the path at which the API is '
                    'mounted.'
                ),
            },
        }
    )
    return array(
        link,
        minItems=len(relations),
        maxItems=len(relations),
        description='Links to this object and to related resources.',
    )


# The generation in a response.
CURRENT_GENERATION = {
    'type': 'integer',
    'minimum': 0,
    'description': 'The generation of the resource provider.',
}

# A resource class name -> an integer amount.
AMOUNTS = keyed(
    RESOURCE_CLASS_NAME,
    {'type': 'integer', 'minimum': 0, 'description': 'An amount of the resource class.'},
)
