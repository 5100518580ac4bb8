"""Schemas of GET /usages."""

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
