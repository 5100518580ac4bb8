"""Schemas of GET /usages and of the usages of a resource provider."""

from typing import Any

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

_V1_9: dict[str, Any] = {
    'type': 'object',
    'properties': {'project_id': common.IDENTIFIER, 'user_id': common.IDENTIFIER},
    'required': ['project_id'],
    'additionalProperties': False,
}
_V1_38 = {
    **_V1_9,
    'properties': {
        **_V1_9['properties'],
        'consumer_type': {
            **common.IDENTIFIER,
            # The name of a consumer type, `unknown`, or any text that begins with `all`.
            'pattern': r'^[A-Z0-9_]+\Z|^all|^unknown\Z',
        },
    },
}

QUERY = Variants({microversion.USAGES: _V1_9, microversion.CONSUMER_TYPES: _V1_38})

# Responses ----------------------------------------------------------------------

PROVIDER_USAGES = Variants(
    {
        microversion.MIN_VERSION: common.closed(
            {
                'resource_provider_generation': common.CURRENT_GENERATION,
                'usages': {
                    **common.AMOUNTS,
                    'description': (
                        'The usage of each resource class of which the provider has an inventory. '
                        'The keys are names of resource classes.'
                    ),
                },
            }
        )
    }
)

_GROUP = {
    'type': 'object',
    'properties': {
        'consumer_count': {
            'type': 'integer',
            'minimum': 1,
            'description': 'The number of consumers in the group.',
        },
    },
    'required': ['consumer_count'],
    'patternProperties': {
        common.RESOURCE_CLASS_NAME: {
            'type': 'integer',
            'minimum': 1,
            'description': 'The usage of the resource class by the consumers in the group.',
        }
    },
    'additionalProperties': False,
    'description': (
        'The usages of the consumers of one consumer type. The other keys are names of resource '
        'classes.'
    ),
}

USAGES = Variants(
    {
        microversion.USAGES: common.closed(
            {
                'usages': {
                    **common.AMOUNTS,
                    'description': (
                        'The usage of each resource class that has allocations. The keys are names '
                        'of resource classes.'
                    ),
                }
            }
        ),
        microversion.CONSUMER_TYPES: common.closed(
            {
                'usages': common.keyed(
                    r'^([A-Z0-9_]+|all|unknown)\Z',
                    _GROUP,
                    description=(
                        'The usages, grouped by consumer type. The keys are consumer types. The '
                        'group `unknown` contains the consumers without a type.'
                    ),
                )
            }
        ),
    }
)
