"""Schemas of the response to GET /allocation_candidates."""

from typing import Any

from placement import microversion
from placement.microversion import Variants, Version
from placement.schemas import common

Schema = dict[str, Any]

_RESOURCES: Schema = {
    **common.keyed(
        common.RESOURCE_CLASS_NAME,
        {'type': 'integer', 'minimum': 1, 'description': 'The amount of the resource class.'},
        minProperties=1,
    ),
    'description': 'The amounts to allocate. The keys are names of resource classes.',
}

_LISTED_ALLOCATIONS: Schema = common.array(
    common.closed(
        {
            'resource_provider': common.described(
                'The resource provider.',
                {'uuid': {**common.UUID, 'description': 'The UUID of the resource provider.'}},
            ),
            'resources': _RESOURCES,
        }
    ),
    minItems=1,
    description='The allocations from each resource provider of the candidate.',
)

_KEYED_ALLOCATIONS: Schema = common.keyed(
    common.UUID_KEY,
    common.described('The allocations from one resource provider.', {'resources': _RESOURCES}),
    minProperties=1,
    description=(
        'The allocations from each resource provider of the candidate. The keys are UUIDs of '
        'resource providers.'
    ),
)

_MAPPINGS: Schema = common.keyed(
    r'^[a-zA-Z0-9_-]{0,64}\Z',
    common.array(
        {**common.UUID, 'description': 'The UUID of a resource provider.'},
        minItems=1,
        description='The UUIDs of the providers that satisfy the request group.',
    ),
    description=(
        'The providers of each request group. The keys are suffixes of request groups; the key of '
        'the unsuffixed group is empty.'
    ),
)

_SUMMARY_RESOURCES: Schema = common.keyed(
    common.RESOURCE_CLASS_NAME,
    common.described(
        'The capacity and the usage of the resource class.',
        {
            'capacity': {
                'type': 'integer',
                'description': (
                    '`(total - reserved) * allocation_ratio` of the inventory, truncated to an '
                    'integer.'
                ),
            },
            'used': {
                'type': 'integer',
                'minimum': 0,
                'description': 'The sum of the allocations of the resource class.',
            },
        },
    ),
)
_REQUESTED_CLASSES = (
    'The capacity and the usage of each requested resource class. The keys are names of resource '
    'classes.'
)
_ALL_CLASSES = (
    'The capacity and the usage of each resource class of which the provider has an inventory. The '
    'keys are names of resource classes.'
)

_TREE: Schema = {
    'parent_provider_uuid': {
        'type': ['string', 'null'],
        'format': 'uuid',
        'description': 'The UUID of the parent of the provider. It is null for a root provider.',
    },
    'root_provider_uuid': {
        **common.UUID,
        'description': 'The UUID of the root provider of the tree.',
    },
}


def _request(version: Version) -> Schema:
    """Return the schema of one element of `allocation_requests`."""
    keyed = version >= microversion.ALLOCATIONS_BY_PROVIDER
    properties = {'allocations': _KEYED_ALLOCATIONS if keyed else _LISTED_ALLOCATIONS}
    if version >= microversion.MAPPINGS:
        properties['mappings'] = _MAPPINGS
    return common.closed(properties)


def _summary(version: Version) -> Schema:
    """Return the schema of one value of `provider_summaries`."""
    complete = version >= microversion.SUMMARIES_ALL_CLASSES
    properties = {
        'resources': {
            **_SUMMARY_RESOURCES,
            'description': _ALL_CLASSES if complete else _REQUESTED_CLASSES,
        }
    }
    if version >= microversion.CANDIDATES_REQUIRED:
        properties['traits'] = common.array(
            {**common.IDENTIFIER, 'description': 'The name of a trait.'},
            description='The names of the traits of the provider.',
        )
    if version >= microversion.NESTED_CANDIDATES:
        properties |= _TREE
    return common.closed(properties)


def _candidates(version: Version) -> Schema:
    return common.closed(
        {
            'allocation_requests': common.array(
                {**_request(version), 'description': 'One allocation candidate.'},
                description=(
                    'The allocation candidates. The body of `PUT /allocations/{consumer_uuid}` can '
                    'contain all members of a candidate unchanged.'
                ),
            ),
            'provider_summaries': common.keyed(
                common.UUID_KEY,
                {**_summary(version), 'description': 'One resource provider.'},
                description='The resource providers. The keys are UUIDs of resource providers.',
            ),
        }
    )


CANDIDATES = Variants(
    {
        since: _candidates(since)
        for since in (
            microversion.ALLOCATION_CANDIDATES,
            microversion.ALLOCATIONS_BY_PROVIDER,
            microversion.CANDIDATES_REQUIRED,
            microversion.SUMMARIES_ALL_CLASSES,
            microversion.NESTED_CANDIDATES,
            microversion.MAPPINGS,
        )
    }
)
