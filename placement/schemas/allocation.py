"""Schemas of PUT and POST /allocations."""

from typing import Any

from placement import microversion
from placement.microversion import Variants, Version
from placement.schemas import common

Schema = dict[str, Any]

_RESOURCES = {
    'type': 'object',
    'minProperties': 1,
    'patternProperties': {
        common.RESOURCE_CLASS_NAME: {
            'type': 'integer',
            'minimum': 1,
            'description': 'The amount of the resource class.',
        },
    },
    'additionalProperties': False,
    'description': ('The amounts that the consumer uses. The keys are names of resource classes.'),
}

_BY_PROVIDER = {
    'type': 'object',
    'patternProperties': {
        common.UUID_KEY: {
            'type': 'object',
            'properties': {
                # Allowed because responses to GET contain the generation. Placement ignores it.
                'generation': {
                    **common.GENERATION,
                    'description': 'Placement ignores this generation.',
                },
                'resources': _RESOURCES,
            },
            'required': ['resources'],
            'additionalProperties': False,
            'description': 'The allocations of the consumer from one resource provider.',
        },
    },
    'additionalProperties': False,
    'description': (
        'All allocations of the consumer after the request. The keys are UUIDs of resource '
        'providers.'
    ),
}

# Maps each request group to the UUIDs of its providers, as in allocation candidates. Placement
# ignores the mappings. The schema does not check the value for the unsuffixed group, because the
# empty key does not match the pattern.
_MAPPINGS = {
    'type': 'object',
    'minProperties': 1,
    'patternProperties': {
        '[a-zA-Z0-9_-]': {
            'type': 'array',
            'minItems': 1,
            'items': {**common.UUID, 'description': 'The UUID of a resource provider.'},
            'description': 'The UUIDs of the providers that satisfy the request group.',
        },
    },
    'description': (
        'The mappings of the allocation candidate. The keys are suffixes of request groups. '
        'Placement ignores the mappings.'
    ),
}

_CONSUMER_TYPE = {
    **common.IDENTIFIER,
    'pattern': r'^[A-Z0-9_]+\Z',
    'description': 'The type of the consumer.',
}


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
        'patternProperties': {
            common.UUID_KEY: {**schema, 'description': 'The allocations of one consumer.'}
        },
        'additionalProperties': False,
        'description': 'The allocations of several consumers. The keys are UUIDs of consumers.',
    }


_OWNER = {
    'project_id': {
        **common.IDENTIFIER,
        'description': 'The identifier of the project of the consumer.',
    },
    'user_id': {**common.IDENTIFIER, 'description': 'The identifier of the user of the consumer.'},
}

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
                        'properties': {
                            'uuid': {
                                **common.UUID,
                                'description': 'The UUID of the resource provider.',
                            }
                        },
                        'required': ['uuid'],
                        'additionalProperties': False,
                        'description': 'The resource provider.',
                    },
                    'resources': _RESOURCES,
                },
                'required': ['resource_provider', 'resources'],
                'additionalProperties': False,
                'description': 'The allocations of the consumer from one resource provider.',
            },
            'description': 'All allocations of the consumer after the request.',
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
_CONSUMER_GENERATION = {
    'type': ['integer', 'null'],
    'description': (
        'The generation of the consumer. It is null for a consumer that has no allocations. If it '
        'does not match the stored generation, the request fails with 409 Conflict.'
    ),
}
_V1_28 = _extended(_V1_13, {'consumer_generation': _CONSUMER_GENERATION})
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

# Responses ----------------------------------------------------------------------

_USED: Schema = {
    **common.AMOUNTS,
    'description': 'The amounts that the consumer uses. The keys are names of resource classes.',
}
_CURRENT_CONSUMER_GENERATION = {
    'type': 'integer',
    'minimum': 0,
    'description': 'The generation of the consumer.',
}

_ONLY_IF_USED = 'Missing if the consumer has no allocations.'

_ALLOCATIONS = common.keyed(
    # Older releases stored some UUIDs in other forms.
    '.',
    common.described(
        'The allocations of the consumer from one resource provider.',
        {'generation': common.CURRENT_GENERATION, 'resources': _USED},
    ),
    description='The allocations of the consumer. The keys are UUIDs of resource providers.',
)


def _consumer(version: Version) -> Schema:
    """Return the schema of the allocations of a consumer in a microversion."""
    properties: Schema = {}
    if version >= microversion.ALLOCATIONS_BY_PROVIDER:
        properties |= {
            name: {**schema, 'description': f'{schema["description"]} {_ONLY_IF_USED}'}
            for name, schema in _OWNER.items()
        }
    if version >= microversion.CONSUMER_GENERATION:
        properties['consumer_generation'] = {
            **_CURRENT_CONSUMER_GENERATION,
            'description': f'The generation of the consumer. {_ONLY_IF_USED}',
        }
    if version >= microversion.CONSUMER_TYPES:
        properties['consumer_type'] = {
            'type': 'string',
            'description': (
                'The type of the consumer, or `unknown` if the consumer has no type. '
                f'{_ONLY_IF_USED}'
            ),
        }
    result = common.closed({'allocations': _ALLOCATIONS, **properties}, optional=tuple(properties))
    if properties:
        result |= {
            'if': {'properties': {'allocations': {'maxProperties': 0}}},
            'then': {'maxProperties': 1},
            'else': {'minProperties': len(result['properties'])},
        }
    return result


CONSUMER = Variants(
    {
        since: _consumer(since)
        for since in (
            microversion.MIN_VERSION,
            microversion.ALLOCATIONS_BY_PROVIDER,
            microversion.CONSUMER_GENERATION,
            microversion.CONSUMER_TYPES,
        )
    }
)


def _provider(properties: Schema) -> Schema:
    """Return the schema of the allocations against a provider, of which each has `properties`."""
    return common.closed(
        {
            'allocations': common.keyed(
                '.',
                common.described('The allocations of one consumer.', properties),
                description=(
                    'The allocations against the provider. The keys are UUIDs of consumers.'
                ),
            ),
            'resource_provider_generation': common.CURRENT_GENERATION,
        }
    )


PROVIDER = Variants(
    {
        microversion.MIN_VERSION: _provider({'resources': _USED}),
        microversion.CONSUMER_GENERATION: _provider(
            {'resources': _USED, 'consumer_generation': _CURRENT_CONSUMER_GENERATION}
        ),
    }
)
