"""Schemas of the aggregates of a resource provider."""

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

_AGGREGATES = {
    'type': 'array',
    # Any form of a UUID that fits the column is valid. Placement stores it unchanged.
    'items': {**common.UUID, 'maxLength': 36},
    'uniqueItems': True,
}

PUT = Variants(
    {
        microversion.AGGREGATES: _AGGREGATES,
        microversion.AGGREGATE_GENERATION: {
            'type': 'object',
            'properties': {
                'aggregates': _AGGREGATES,
                'resource_provider_generation': common.GENERATION,
            },
            'required': ['aggregates', 'resource_provider_generation'],
            'additionalProperties': False,
        },
    }
)
