"""Schemas of the responses to GET /usages and to GET of the usages of a resource provider."""

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

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
