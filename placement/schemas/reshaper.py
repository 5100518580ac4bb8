"""Schemas of POST /reshaper."""

from typing import Any

from placement import microversion
from placement.microversion import Variants
from placement.schemas import allocation, common, inventory


def _schema(version: microversion.Version) -> dict[str, Any]:
    return {
        'type': 'object',
        'properties': {
            'inventories': {
                'type': 'object',
                'minProperties': 1,
                'patternProperties': {
                    common.UUID_KEY: {
                        **inventory.PUT_INVENTORIES,
                        'description': 'All inventories of one resource provider.',
                    }
                },
                'additionalProperties': False,
                'description': (
                    'All inventories of each resource provider after the request. The keys are '
                    'UUIDs of resource providers.'
                ),
            },
            # The schema of POST /allocations, but here the object may be empty.
            'allocations': {
                **allocation.POST.pick(version),
                'minProperties': 0,
                'description': (
                    'All allocations of each consumer after the request. The keys are UUIDs of '
                    'consumers.'
                ),
            },
        },
        'required': ['inventories', 'allocations'],
        'additionalProperties': False,
    }


POST = Variants(
    {
        since: _schema(since)
        for since in (
            microversion.RESHAPER,
            microversion.MAPPINGS,
            microversion.CONSUMER_TYPES,
        )
    }
)
