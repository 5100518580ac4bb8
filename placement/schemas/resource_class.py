"""Schemas of /resource_classes."""

from placement.schemas import common

NAME = {'type': 'string', 'pattern': common.CUSTOM_NAME, 'maxLength': 255}

# For POST, and for PUT as long as it renames.
BODY = {
    'type': 'object',
    'properties': {'name': NAME},
    'required': ['name'],
    'additionalProperties': False,
}
