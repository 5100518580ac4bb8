"""Schemas of /resource_providers."""

from typing import Any, Final

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

_NAME = {
    'type': 'string',
    'maxLength': 200,
    'description': 'The name of the resource provider. It must be unique, and not empty.',
}
_PARENT = {'type': ['string', 'null'], 'format': 'uuid'}
_NEW_PARENT = {
    **_PARENT,
    'description': 'The UUID of the parent. If it is missing or null, the provider is a root.',
}
_CHANGED_PARENT = {
    **_PARENT,
    'description': (
        'The UUID of the parent. If it is missing, the parent does not change. If it is null, the '
        'provider becomes a root.'
    ),
}

_POST_V1_0: dict[str, Any] = {
    'type': 'object',
    'properties': {
        'name': _NAME,
        'uuid': {
            **common.UUID,
            'description': (
                'The UUID of the resource provider. If it is missing, Placement generates a UUID.'
            ),
        },
    },
    'required': ['name'],
    'additionalProperties': False,
}
_POST_V1_14 = {
    **_POST_V1_0,
    'properties': {**_POST_V1_0['properties'], 'parent_provider_uuid': _NEW_PARENT},
}

POST = Variants(
    {
        microversion.MIN_VERSION: _POST_V1_0,
        microversion.NESTED_PROVIDERS: _POST_V1_14,
    }
)

_PUT_V1_0 = {
    'type': 'object',
    'properties': {'name': _NAME},
    'required': ['name'],
    'additionalProperties': False,
}
_PUT_V1_14 = {
    **_PUT_V1_0,
    'properties': {'name': _NAME, 'parent_provider_uuid': _CHANGED_PARENT},
}

PUT = Variants(
    {
        microversion.MIN_VERSION: _PUT_V1_0,
        microversion.NESTED_PROVIDERS: _PUT_V1_14,
    }
)

# Responses ----------------------------------------------------------------------

# The links of a provider other than `self`, and the microversion that added each link.
LINKS: Final = (
    ('inventories', microversion.MIN_VERSION),
    ('usages', microversion.MIN_VERSION),
    ('aggregates', microversion.AGGREGATES),
    ('traits', microversion.TRAITS),
    ('allocations', microversion.ALLOCATIONS_LINK),
)

_TREE = {
    'parent_provider_uuid': {
        **_PARENT,
        'description': 'The UUID of the parent of the provider. It is null for a root provider.',
    },
    'root_provider_uuid': {
        **common.UUID,
        'description': (
            'The UUID of the root provider of the tree. For a root provider, it is its own UUID.'
        ),
    },
}


def _provider(version: microversion.Version) -> dict[str, Any]:
    """Return the schema of a provider in a microversion."""
    relations = [name for name, since in LINKS if version >= since]
    return common.closed(
        {
            'uuid': {**common.UUID, 'description': 'The UUID of the resource provider.'},
            'name': {'type': 'string', 'description': 'The name of the resource provider.'},
            'generation': common.CURRENT_GENERATION,
            'links': common.links('self', *relations),
            **(_TREE if version >= microversion.NESTED_PROVIDERS else {}),
        }
    )


_SINCE = (
    microversion.MIN_VERSION,
    microversion.AGGREGATES,
    microversion.TRAITS,
    microversion.ALLOCATIONS_LINK,
    microversion.NESTED_PROVIDERS,
)

PROVIDER = Variants({since: _provider(since) for since in _SINCE})

PROVIDERS = Variants(
    {
        since: common.closed(
            {
                'resource_providers': common.array(
                    PROVIDER.pick(since), description='The resource providers that match the query.'
                )
            }
        )
        for since in _SINCE
    }
)

# The body of the response to POST, which was empty in earlier microversions.
CREATED_PROVIDER = Variants(
    {
        microversion.PROVIDER_POST_RETURNS_BODY: PROVIDER.pick(
            microversion.PROVIDER_POST_RETURNS_BODY
        )
    }
)
