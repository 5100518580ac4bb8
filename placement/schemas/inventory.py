"""Schemas of the inventories of a resource provider; they are the same in all microversions."""

from typing import Any

from placement import capacity, microversion
from placement.microversion import Variants
from placement.schemas import common

_AMOUNT = {'type': 'integer', 'minimum': 1, 'maximum': capacity.MAX_INT}

_FIELDS: dict[str, Any] = {
    'total': {**_AMOUNT, 'description': 'The amount of the resource that the provider has.'},
    'reserved': {
        'type': 'integer',
        'minimum': 0,
        'maximum': capacity.MAX_INT,
        'description': 'The part of the total that consumers cannot use. The default is 0.',
    },
    'min_unit': {
        **_AMOUNT,
        'description': 'The minimum amount of one allocation. The default is 1.',
    },
    'max_unit': {
        **_AMOUNT,
        'description': 'The maximum amount of one allocation. The default is 2147483647.',
    },
    'step_size': {
        **_AMOUNT,
        'description': 'The amount of an allocation must be a multiple of it. The default is 1.',
    },
    # The range of the column, which is a single-precision float.
    'allocation_ratio': {
        'type': 'number',
        'minimum': -3.40282e38,
        'maximum': 3.40282e38,
        'description': (
            'The factor by which the resource is overcommitted. The capacity is '
            '`(total - reserved) * allocation_ratio`. The default is 1.0.'
        ),
    },
}

_INVENTORY = {
    'resource_provider_generation': common.GENERATION,
    **_FIELDS,
}
_IGNORED_GENERATION = {
    **common.GENERATION,
    'description': 'Placement ignores this generation.',
}

POST_INVENTORY = {
    'type': 'object',
    'properties': {
        **_INVENTORY,
        'resource_provider_generation': _IGNORED_GENERATION,
        'resource_class': {
            'type': 'string',
            'pattern': common.RESOURCE_CLASS_NAME,
            'description': 'The name of the resource class.',
        },
    },
    'required': ['resource_class', 'total'],
    'additionalProperties': False,
}

PUT_INVENTORY = {
    'type': 'object',
    'properties': _INVENTORY,
    'required': ['resource_provider_generation', 'total'],
    'additionalProperties': False,
}

PUT_INVENTORIES = {
    'type': 'object',
    'properties': {
        'resource_provider_generation': common.GENERATION,
        'inventories': {
            'type': 'object',
            # The keys are names of resource classes. The schema accepts any name: Placement later
            # reports an invalid name as an unknown class.
            'additionalProperties': {
                'type': 'object',
                'properties': {
                    **_INVENTORY,
                    'resource_provider_generation': _IGNORED_GENERATION,
                },
                'required': ['total'],
                'additionalProperties': False,
                'description': 'The inventory of one resource class.',
            },
            'description': (
                'All inventories of the provider after the request. The keys are names of resource '
                'classes.'
            ),
        },
    },
    'required': ['resource_provider_generation', 'inventories'],
    'additionalProperties': False,
}

# Responses ----------------------------------------------------------------------

_RECORD = common.described('The inventory of one resource class.', _FIELDS)

INVENTORY = Variants(
    {
        microversion.MIN_VERSION: common.closed(
            {'resource_provider_generation': common.CURRENT_GENERATION, **_FIELDS}
        )
    }
)

INVENTORIES = Variants(
    {
        microversion.MIN_VERSION: common.closed(
            {
                'resource_provider_generation': common.CURRENT_GENERATION,
                'inventories': common.keyed(
                    common.RESOURCE_CLASS_NAME,
                    _RECORD,
                    description=(
                        'All inventories of the provider. The keys are names of resource classes.'
                    ),
                ),
            }
        )
    }
)
