"""Schemas of the inventories of a resource provider; they are the same in all microversions."""

from placement import capacity
from placement.schemas import common

_AMOUNT = {'type': 'integer', 'minimum': 1, 'maximum': capacity.MAX_INT}

_INVENTORY = {
    'resource_provider_generation': common.GENERATION,
    'total': _AMOUNT,
    'reserved': {'type': 'integer', 'minimum': 0, 'maximum': capacity.MAX_INT},
    'min_unit': _AMOUNT,
    'max_unit': _AMOUNT,
    'step_size': _AMOUNT,
    # The range of the column, which is a single-precision float.
    'allocation_ratio': {'type': 'number', 'minimum': -3.40282e38, 'maximum': 3.40282e38},
}

POST_INVENTORY = {
    'type': 'object',
    'properties': {
        **_INVENTORY,
        'resource_class': {'type': 'string', 'pattern': common.RESOURCE_CLASS_NAME},
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
                'properties': _INVENTORY,
                'required': ['total'],
                'additionalProperties': False,
            },
        },
    },
    'required': ['resource_provider_generation', 'inventories'],
    'additionalProperties': False,
}
