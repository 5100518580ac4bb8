"""Schemas of /resource_providers."""

from typing import Any

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

_NAME = {'type': 'string', 'maxLength': 200}
_PARENT = {'type': ['string', 'null'], 'format': 'uuid'}

_POST_V1_0: dict[str, Any] = {
    'type': 'object',
    'properties': {'name': _NAME, 'uuid': common.UUID},
    'required': ['name'],
    'additionalProperties': False,
}
_POST_V1_14 = {
    **_POST_V1_0,
    'properties': {**_POST_V1_0['properties'], 'parent_provider_uuid': _PARENT},
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
    'properties': {'name': _NAME, 'parent_provider_uuid': _PARENT},
}

PUT = Variants(
    {
        microversion.MIN_VERSION: _PUT_V1_0,
        microversion.NESTED_PROVIDERS: _PUT_V1_14,
    }
)

_TEXT = {'type': 'string'}
_STRICT_UUID = {'type': 'string', 'pattern': common.HYPHENATED_UUID}


def _query(*names: str) -> dict[str, Any]:
    """Return the schema of a query string that may contain the named parameters."""
    parameters = {
        'name': _TEXT,
        'uuid': _STRICT_UUID,
        'member_of': _TEXT,
        'resources': _TEXT,
        'in_tree': _STRICT_UUID,
        'required': _TEXT,
    }
    return {
        'type': 'object',
        'properties': {name: parameters[name] for name in names},
        'additionalProperties': False,
    }


QUERY = Variants(
    {
        microversion.MIN_VERSION: _query('name', 'uuid'),
        microversion.PROVIDERS_MEMBER_OF: _query('name', 'uuid', 'member_of'),
        microversion.PROVIDERS_RESOURCES: _query('name', 'uuid', 'member_of', 'resources'),
        microversion.NESTED_PROVIDERS: _query('name', 'uuid', 'member_of', 'resources', 'in_tree'),
        microversion.PROVIDERS_REQUIRED: _query(
            'name', 'uuid', 'member_of', 'resources', 'in_tree', 'required'
        ),
    }
)
