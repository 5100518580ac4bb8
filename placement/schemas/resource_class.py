"""Schemas of /resource_classes."""

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

NAME = {
    'type': 'string',
    'pattern': common.CUSTOM_NAME,
    'maxLength': 255,
    'description': 'The name of a custom resource class. It begins with `CUSTOM_`.',
}

# The body of POST, and of PUT before microversion 1.7, which renames the class.
BODY = {
    'type': 'object',
    'properties': {'name': NAME},
    'required': ['name'],
    'additionalProperties': False,
}

# Responses ----------------------------------------------------------------------

_CLASS = common.closed(
    {
        'name': {
            'type': 'string',
            'pattern': common.RESOURCE_CLASS_NAME,
            'description': 'The name of the resource class.',
        },
        'links': common.links('self'),
    }
)

RESOURCE_CLASS = Variants({microversion.RESOURCE_CLASSES: _CLASS})

RESOURCE_CLASSES = Variants(
    {
        microversion.RESOURCE_CLASSES: common.closed(
            {
                'resource_classes': common.array(
                    _CLASS, description='All standard and custom resource classes.'
                )
            }
        )
    }
)
