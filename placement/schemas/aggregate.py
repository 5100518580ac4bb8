"""Schemas of the aggregates of a resource provider."""

from typing import Any

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

_AGGREGATES: dict[str, Any] = {
    'type': 'array',
    # Any form of a UUID that fits the column is valid. Placement stores it unchanged.
    'items': {**common.UUID, 'maxLength': 36, 'description': 'The UUID of an aggregate.'},
    'uniqueItems': True,
    'description': 'The UUIDs of all aggregates of the resource provider.',
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

# Responses ----------------------------------------------------------------------

_LISTED = common.array(
    {'type': 'string', 'maxLength': 36, 'description': 'The UUID of an aggregate, as written.'},
    description='The UUIDs of all aggregates of the resource provider.',
)

AGGREGATES = Variants(
    {
        microversion.AGGREGATES: common.closed({'aggregates': _LISTED}),
        microversion.AGGREGATE_GENERATION: common.closed(
            {'aggregates': _LISTED, 'resource_provider_generation': common.CURRENT_GENERATION}
        ),
    }
)
