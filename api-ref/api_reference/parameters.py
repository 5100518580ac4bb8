"""The forms of the values in query strings and in paths.

The patterns match the values that `placement.grammar` accepts, if their names can exist. Amounts
can also have digits of other scripts, which patterns cannot express in all languages.
"""

from api_reference.terms import Operation
from placement import microversion
from placement.microversion import MIN_VERSION, Variants, Version
from placement.schemas import CUSTOM_NAME, HYPHENATED_UUID, RESOURCE_CLASS_NAME, Schema

# The forms that the format `uuid` of request bodies allows: a UUID in any letter case, with hyphens
# at any position, prefixes and braces. The documents state the pattern, because other validators
# require hyphens.
UUID_FORMS = '(urn:|uuid:|[{}])*-*([0-9a-fA-F]-*){32}[{}]*'
ANY_UUID = rf'^{UUID_FORMS}\Z'
_PADDED_UUID = rf'^\s*{UUID_FORMS}\s*\Z'
UUID_PATTERNS = (HYPHENATED_UUID['pattern'], ANY_UUID, _PADDED_UUID)

NAME = '[A-Z0-9_]+'
_AMOUNT = r'\s*\+?(0_?)*[1-9](_?[0-9])*\s*'
_NUMBER = '[1-9][0-9]*'
_TEXT = '[a-zA-Z0-9_-]{1,64}'
# The suffixes of the parameters of request groups.
SUFFIX = Variants({microversion.GRANULAR_GROUPS: _NUMBER, microversion.TEXT_SUFFIXES: _TEXT})


def _text(pattern: str) -> Schema:
    """Return the schema of a text that completely matches a pattern."""
    return {'type': 'string', 'pattern': rf'^{pattern}\Z'}


def _listed(item: str) -> str:
    """Return the pattern of a list whose items match a pattern and are separated by commas."""
    return f'{item}(,{item})*'


_TRAITS = _listed(rf'\s*{NAME}\s*')
_TRAITS_OR_FORBIDDEN = _listed(rf'\s*!*{NAME}\s*')
_AGGREGATES = f'({UUID_FORMS}|in:{_listed(UUID_FORMS)})'

# The forms of the values that the service parses without a schema, by microversion.
FORMS: dict[str, dict[Version, Schema]] = {
    'resources': {MIN_VERSION: _text(_listed(f'{NAME}:{_AMOUNT}'))},
    'required': {
        MIN_VERSION: _text(_TRAITS),
        microversion.FORBIDDEN_TRAITS: _text(_TRAITS_OR_FORBIDDEN),
        microversion.ANY_TRAITS: _text(f'(in:{_TRAITS}|{_TRAITS_OR_FORBIDDEN})'),
    },
    'member_of': {
        MIN_VERSION: _text(_AGGREGATES),
        microversion.FORBIDDEN_AGGREGATES: _text(f'!?{_AGGREGATES}'),
    },
    'in_tree': {MIN_VERSION: {'type': 'string', 'pattern': _PADDED_UUID}},
    'limit': {MIN_VERSION: {'type': 'integer', 'minimum': 1}},
    'group_policy': {MIN_VERSION: {'type': 'string', 'enum': ['none', 'isolate']}},
    'root_required': {MIN_VERSION: _text(_TRAITS_OR_FORBIDDEN)},
    'same_subtree': {MIN_VERSION: _text(_listed(rf'\s*{_TEXT}\s*'))},
}
# The first microversion in which all values of a repeated parameter apply.
REPEATABLE = {
    'required': microversion.ANY_TRAITS,
    'member_of': microversion.REPEATED_MEMBER_OF,
    'same_subtree': microversion.SAME_SUBTREE,
}


def forms(name: str, since: Version) -> Variants[Schema]:
    """Return the forms of a parsed value, beginning with a microversion."""
    every = FORMS[name]
    later = {start: form for start, form in every.items() if start > since}
    return Variants({since: Variants(every).pick(since), **later})


# Paths ------------------------------------------------------------------------

_CLASS: Schema = {
    'type': 'string',
    'pattern': RESOURCE_CLASS_NAME,
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
    '/resource_classes/': {'name': {**_CLASS, 'maxLength': CUSTOM_NAME['maxLength']}},
    '/traits/': {
        'name': {
            'type': 'string',
            'minLength': 1,
            'maxLength': CUSTOM_NAME['maxLength'],
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
    path, check = operation.declared.path, operation.declared.path_check
    names = [segment.strip('{}') for segment in path.split('/') if segment.startswith('{')]
    found = next((items for start, items in _PATH_ITEMS.items() if path.startswith(start)), {})
    schemas = {name: found[name] for name in names}
    if check is not None and version >= check.since:
        text = operation.checked_path or schemas[check.name]['description']
        schemas[check.name] = {**schemas[check.name], **check.schema, 'description': text}
    return schemas
