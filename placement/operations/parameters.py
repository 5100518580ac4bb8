"""The query parameters that several operations have, and the forms of their values.

The patterns describe the documented forms of the values. `placement.grammar` accepts some other
forms too, for example blanks around an amount.
"""

from collections.abc import Mapping
from typing import Any

from placement import microversion
from placement.microversion import Variants, Version
from placement.operations.operation import Change, Parameter, Schema
from placement.schemas import common, resource_class, trait

_UUID = '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}'
_NAME = '[A-Z0-9_]+'
_AMOUNT = f'{_NAME}:[1-9][0-9]*'
_AGGREGATES = f'({_UUID}|in:{_UUID}(,{_UUID})*)'

UUID: Schema = {'type': 'string', 'pattern': common.HYPHENATED_UUID}
IDENTIFIER: Schema = common.IDENTIFIER


def text(pattern: str) -> Schema:
    """Return the schema of a text that completely matches a pattern."""
    return {'type': 'string', 'pattern': rf'^{pattern}\Z'}


TRAITS_OR_FORBIDDEN = text(f'!?{_NAME}(,!?{_NAME})*')

# Changes that the parameters of several operations have in common.
REPEATED_MEMBER_OF = Change(
    'the parameter can be repeated, and all of its values apply.',
    since=microversion.REPEATED_MEMBER_OF,
)
ANY_TRAITS = Change(
    'with `in:` before the list, a provider must have at least one of the traits. The parameter '
    'can be repeated, and all of its values apply.',
    since=microversion.ANY_TRAITS,
)

_RESOURCES = {microversion.MIN_VERSION: text(f'{_AMOUNT}(,{_AMOUNT})*')}
_REQUIRED = {
    microversion.MIN_VERSION: text(f'{_NAME}(,{_NAME})*'),
    microversion.FORBIDDEN_TRAITS: TRAITS_OR_FORBIDDEN,
    microversion.ANY_TRAITS: text(f'(in:{_NAME}(,{_NAME})*|!?{_NAME}(,!?{_NAME})*)'),
}
_MEMBER_OF = {
    microversion.MIN_VERSION: text(_AGGREGATES),
    microversion.FORBIDDEN_AGGREGATES: text(f'!?{_AGGREGATES}'),
}


def single(name: str, since: Version, value: Schema, text: str) -> Parameter:
    """Return the declaration of a parameter whose values always have the same form."""
    return Parameter(name=name, text=text, value=Variants({since: value}))


def resources(since: Version, text: str, **more: Any) -> Parameter:
    """Return the declaration of `resources`.

    :param more: other fields of the declaration
    """
    value = _beginning(since, _RESOURCES)
    return Parameter(name='resources', text=text, value=value, lenient=common.TEXT, **more)


def required(since: Version, text: str, **more: Any) -> Parameter:
    """Return the declaration of `required`.

    :param more: other fields of the declaration
    """
    return Parameter(
        name='required',
        text=text,
        value=_beginning(since, _REQUIRED),
        repeatable=microversion.ANY_TRAITS,
        lenient=common.TEXT,
        **more,
    )


def member_of(since: Version, text: str, **more: Any) -> Parameter:
    """Return the declaration of `member_of`.

    :param more: other fields of the declaration
    """
    return Parameter(
        name='member_of',
        text=text,
        value=_beginning(since, _MEMBER_OF),
        repeatable=microversion.REPEATED_MEMBER_OF,
        lenient=common.TEXT,
        **more,
    )


def _beginning(since: Version, forms: Mapping[Version, Schema]) -> Variants[Schema]:
    """Return the forms of a value beginning with the first microversion of its parameter."""
    later = {start: form for start, form in forms.items() if start > since}
    return Variants({since: Variants(forms).pick(since), **later})


# Paths ------------------------------------------------------------------------

_PROVIDER: Schema = {**common.UUID, 'description': 'The UUID of the resource provider.'}
_CLASS: Schema = {
    'type': 'string',
    'pattern': common.RESOURCE_CLASS_NAME,
    'description': 'The name of the resource class.',
}

# Beginning of the path -> the name of a parameter in the path -> the schema of its value.
PATH_ITEMS: dict[str, dict[str, Schema]] = {
    '/resource_providers/': {'uuid': _PROVIDER, 'resource_class': _CLASS},
    '/resource_classes/': {'name': {**_CLASS, 'maxLength': resource_class.NAME['maxLength']}},
    '/traits/': {
        'name': {
            'type': 'string',
            'minLength': 1,
            'maxLength': trait.NAME['maxLength'],
            'description': 'The name of the trait.',
        }
    },
    '/allocations/': {'consumer_uuid': {**common.UUID, 'description': 'The UUID of the consumer.'}},
}


def path_items(path: str) -> dict[str, Schema]:
    """Return the schemas of the parameters in a path, by name, in the order of the path."""
    names = [segment.strip('{}') for segment in path.split('/') if segment.startswith('{')]
    schemas = next((items for start, items in PATH_ITEMS.items() if path.startswith(start)), {})
    return {name: schemas[name] for name in names}
