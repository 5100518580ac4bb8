"""Schemas of /resource_classes."""

from placement.schemas import common

NAME = {'type': 'string', 'pattern': common.CUSTOM_NAME, 'maxLength': 255}

# For POST, and for PUT before microversion 1.7, where it renames.
BODY = {
    'type': 'object',
    'properties': {'name': NAME},
    'required': ['name'],
    'additionalProperties': False,
}
