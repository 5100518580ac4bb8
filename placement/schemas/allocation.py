"""Schemas of PUT and POST /allocations."""

from typing import Any

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

Schema = dict[str, Any]

_RESOURCES = {
    'type': 'object',
    'minProperties': 1,
    'patternProperties': {
        common.RESOURCE_CLASS_NAME: {'type': 'integer', 'minimum': 1},
    },
    'additionalProperties': False,
}

_BY_PROVIDER = {
    'type': 'object',
    'patternProperties': {
        common.UUID_KEY: {
            'type': 'object',
            'properties': {
                # Allowed because responses to GET contain the generation. Placement ignores it.
                'generation': common.GENERATION,
                'resources': _RESOURCES,
            },
            'required': ['resources'],
            'additionalProperties': False,
        },
    },
    'additionalProperties': False,
}

# Maps each request group to the UUIDs of its providers, as in allocation candidates. Placement
# ignores the mappings. The schema does not check the value for the unsuffixed group, because the
# empty key does not match the pattern.
_MAPPINGS = {
    'type': 'object',
    'minProperties': 1,
    'patternProperties': {
        '[a-zA-Z0-9_-]': {'type': 'array', 'minItems': 1, 'items': common.UUID},
    },
}

_CONSUMER_TYPE = {**common.IDENTIFIER, 'pattern': r'^[A-Z0-9_]+\Z'}


def _extended(schema: Schema, properties: Schema, required: bool = True) -> Schema:
    """Return `schema` with additional properties, which are required by default."""
    return {
        **schema,
        'properties': {**schema['properties'], **properties},
        'required': [*schema['required'], *(properties if required else ())],
    }


def _keyed_by_consumer(schema: Schema) -> Schema:
    """Return the schema of an object that maps consumer UUIDs to documents of `schema`."""
    return {
        'type': 'object',
        'minProperties': 1,
        'patternProperties': {common.UUID_KEY: schema},
        'additionalProperties': False,
    }


_OWNER = {'project_id': common.IDENTIFIER, 'user_id': common.IDENTIFIER}

_V1_0: Schema = {
    'type': 'object',
    'properties': {
        'allocations': {
            'type': 'array',
            'minItems': 1,
            'items': {
                'type': 'object',
                'properties': {
                    'resource_provider': {
                        'type': 'object',
                        'properties': {'uuid': common.UUID},
                        'required': ['uuid'],
                        'additionalProperties': False,
                    },
                    'resources': _RESOURCES,
                },
                'required': ['resource_provider', 'resources'],
                'additionalProperties': False,
            },
        },
    },
    'required': ['allocations'],
    'additionalProperties': False,
}
_V1_8 = _extended(_V1_0, _OWNER)

# Since microversion 1.12, `allocations` is an object keyed by provider UUID. If this object is
# empty, all allocations of the consumer are deleted. POST, which is new in 1.13, always accepts an
# empty object; PUT accepts it since 1.28.
_V1_13: Schema = {
    'type': 'object',
    'properties': {'allocations': _BY_PROVIDER, **_OWNER},
    'required': ['allocations', 'project_id', 'user_id'],
    'additionalProperties': False,
}
_V1_12 = {
    **_V1_13,
    'properties': {**_V1_13['properties'], 'allocations': {**_BY_PROVIDER, 'minProperties': 1}},
}
_V1_28 = _extended(_V1_13, {'consumer_generation': {'type': ['integer', 'null']}})
_V1_34 = _extended(_V1_28, {'mappings': _MAPPINGS}, required=False)
_V1_38 = _extended(_V1_34, {'consumer_type': _CONSUMER_TYPE})

PUT = Variants(
    {
        microversion.MIN_VERSION: _V1_0,
        microversion.ALLOCATION_OWNER: _V1_8,
        microversion.ALLOCATIONS_BY_PROVIDER: _V1_12,
        microversion.CONSUMER_GENERATION: _V1_28,
        microversion.MAPPINGS: _V1_34,
        microversion.CONSUMER_TYPES: _V1_38,
    }
)

POST = Variants(
    {
        microversion.POST_ALLOCATIONS: _keyed_by_consumer(_V1_13),
        microversion.CONSUMER_GENERATION: _keyed_by_consumer(_V1_28),
        microversion.MAPPINGS: _keyed_by_consumer(_V1_34),
        microversion.CONSUMER_TYPES: _keyed_by_consumer(_V1_38),
    }
)
