"""The query parameters that several operations have, and the forms of their values.

The patterns match the values that `placement.grammar` accepts, if their names can exist. Amounts
can also have digits of other scripts, which patterns cannot express in all languages.
"""

from collections.abc import Mapping
from typing import Any

from placement import microversion
from placement.microversion import Variants, Version
from placement.operations.operation import Change, Operation, Parameter, Schema
from placement.schemas import common, resource_class, trait

NAME = '[A-Z0-9_]+'
AMOUNT = r'\s*\+?(0_?)*[1-9](_?[0-9])*\s*'

UUID: Schema = {'type': 'string', 'pattern': common.HYPHENATED_UUID}
PADDED_UUID: Schema = {'type': 'string', 'pattern': common.PADDED_UUID}
IDENTIFIER: Schema = common.IDENTIFIER


def text(pattern: str) -> Schema:
    """Return the schema of a text that completely matches a pattern."""
    return {'type': 'string', 'pattern': rf'^{pattern}\Z'}


def listed(item: str) -> str:
    """Return the pattern of a list whose items match a pattern and are separated by commas."""
    return f'{item}(,{item})*'


_TRAITS = listed(rf'\s*{NAME}\s*')
_TRAITS_OR_FORBIDDEN = listed(rf'\s*!*{NAME}\s*')
TRAITS_OR_FORBIDDEN = text(_TRAITS_OR_FORBIDDEN)

# Changes that the parameters of several operations have in common.
REPEATED_MEMBER_OF = Change(
    'the parameter can be repeated, and all of its values apply.',
    since=microversion.REPEATED_MEMBER_OF,
)
_LAST_REQUIRED = Change(
    'if the parameter is repeated, its last value applies.', until=microversion.ANY_TRAITS.before()
)
_ANY_TRAITS = Change(
    'with `in:` before the list, a provider must have at least one of the traits. The parameter '
    'can be repeated, and all of its values apply.',
    since=microversion.ANY_TRAITS,
)

_RESOURCES = {microversion.MIN_VERSION: text(listed(f'{NAME}:{AMOUNT}'))}
_REQUIRED = {
    microversion.MIN_VERSION: text(_TRAITS),
    microversion.FORBIDDEN_TRAITS: TRAITS_OR_FORBIDDEN,
    microversion.ANY_TRAITS: text(f'(in:{_TRAITS}|{_TRAITS_OR_FORBIDDEN})'),
}
_AGGREGATES = f'({common.UUID_FORMS}|in:{listed(common.UUID_FORMS)})'
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


def required(since: Version, text: str, changes: tuple[Change, ...] = (), **more: Any) -> Parameter:
    """Return the declaration of `required`.

    :param more: other fields of the declaration
    """
    return Parameter(
        name='required',
        text=text,
        changes=(_LAST_REQUIRED, *changes, _ANY_TRAITS),
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

_CLASS: Schema = {
    'type': 'string',
    'pattern': common.RESOURCE_CLASS_NAME,
    'description': 'The name of the resource class.',
}

# Beginning of the path -> the name of a parameter in the path -> the schema of its value.
_PATH_ITEMS: dict[str, dict[str, Schema]] = {
    '/resource_providers/': {
        # Providers are stored with hyphens, so a path with another form finds no provider.
        'uuid': {
            'type': 'string',
            'format': 'uuid',
            'description': 'The UUID of the resource provider.',
        },
        'resource_class': _CLASS,
    },
    '/resource_classes/': {'name': {**_CLASS, 'maxLength': resource_class.NAME['maxLength']}},
    '/traits/': {
        'name': {
            'type': 'string',
            'minLength': 1,
            'maxLength': trait.NAME['maxLength'],
            'description': 'The name of the trait.',
        }
    },
    # Reads accept any text: a consumer without allocations need not exist.
    '/allocations/': {
        'consumer_uuid': {
            'type': 'string',
            'minLength': 1,
            'description': 'The UUID of the consumer.',
        }
    },
}


def path_items(operation: Operation, version: Version) -> dict[str, Schema]:
    """Return the schemas of the parameters in a path, by name, in the order of the path."""
    path, check = operation.path, operation.path_check
    names = [segment.strip('{}') for segment in path.split('/') if segment.startswith('{')]
    found = next((items for start, items in _PATH_ITEMS.items() if path.startswith(start)), {})
    schemas = {name: found[name] for name in names}
    if check is not None and check.applies(version):
        schemas[check.name] = {**schemas[check.name], **check.schema}
    return schemas
