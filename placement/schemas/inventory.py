"""Schemas of the inventories of a resource provider; they are the same in all microversions."""

from placement.schemas import common

_AMOUNT = {'type': 'integer', 'minimum': 1, 'maximum': common.MAX_INT}

_RECORD = {
    'resource_provider_generation': common.GENERATION,
    'total': _AMOUNT,
    'reserved': {'type': 'integer', 'minimum': 0, 'maximum': common.MAX_INT},
    'min_unit': _AMOUNT,
    'max_unit': _AMOUNT,
    'step_size': _AMOUNT,
    # What a single precision column can hold.
    'allocation_ratio': {'type': 'number', 'minimum': -3.40282e38, 'maximum': 3.40282e38},
}

POST_INVENTORY = {
    'type': 'object',
    'properties': {
        **_RECORD,
        'resource_class': {'type': 'string', 'pattern': common.RESOURCE_CLASS_NAME},
    },
    'required': ['resource_class', 'total'],
    'additionalProperties': False,
}

PUT_INVENTORY = {
    'type': 'object',
    'properties': _RECORD,
    'required': ['resource_provider_generation', 'total'],
    'additionalProperties': False,
}

PUT_INVENTORIES = {
    'type': 'object',
    'properties': {
        'resource_provider_generation': common.GENERATION,
        'inventories': {
            'type': 'object',
            # Keyed by resource class. A key that cannot be the name of a class is an unknown
            # class like any other; what it stands for has to be a record all the same.
            'additionalProperties': {
                'type': 'object',
                'properties': _RECORD,
                'required': ['total'],
                'additionalProperties': False,
            },
        },
    },
    'required': ['resource_provider_generation', 'inventories'],
    'additionalProperties': False,
}
