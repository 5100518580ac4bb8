"""Schemas of /traits and of the traits of a resource provider."""

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

# The name in the path of PUT /traits/{name}.
NAME = {'type': 'string', 'pattern': common.CUSTOM_NAME, 'maxLength': 255}

PUT_TRAITS = {
    'type': 'object',
    'properties': {
        'traits': {
            'type': 'array',
            'items': {**common.IDENTIFIER, 'description': 'The name of an existing trait.'},
            'description': 'The names of all traits of the resource provider after the request.',
        },
        'resource_provider_generation': common.GENERATION,
    },
    'required': ['traits', 'resource_provider_generation'],
    'additionalProperties': False,
}

# An operator (`in` or `startswith`), a colon and the operand, for example `in:A,B`.
NAME_FILTER = {'type': 'string', 'pattern': ':'}
ASSOCIATED_FILTER = {
    'type': 'string',
    'pattern': r'^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\Z',
}

# Responses ----------------------------------------------------------------------

_NAMES = common.array({**common.IDENTIFIER, 'description': 'The name of a trait.'})

TRAITS = Variants(
    {
        microversion.TRAITS: common.closed(
            {'traits': {**_NAMES, 'description': 'The names of the traits that match the query.'}}
        )
    }
)

PROVIDER_TRAITS = Variants(
    {
        microversion.TRAITS: common.closed(
            {
                'traits': {**_NAMES, 'description': 'The names of the traits of the provider.'},
                'resource_provider_generation': common.CURRENT_GENERATION,
            }
        )
    }
)
