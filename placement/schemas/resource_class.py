"""Schemas of /resource_classes."""

from placement.schemas import common

NAME = {'type': 'string', 'pattern': common.CUSTOM_NAME, 'maxLength': 255}

# The body of POST, and of PUT before microversion 1.7, which renames the class.
BODY = {
    'type': 'object',
    'properties': {'name': NAME},
    'required': ['name'],
    'additionalProperties': False,
}
