"""Restricts an OpenAPI document to the values of a small cloud.

Random names and UUIDs name nothing, so random requests mostly fail with 400 or 404. `restricted`
returns a document with the same operations, whose parameters and bodies contain only the names and
UUIDs of the cloud that `generated.cloud` creates, and small amounts.
"""

import copy
import itertools
import re
from typing import Any

from placement.tests.functional.invalid_requests import generated

Schema = dict[str, Any]

# Placeholders of the current generation. `test_fuzz` replaces them before it sends a request. The
# values of a schema are equally likely, so there are several.
CURRENT = range(-8, 0)
STALE = 1_000_000

CLASSES = [*generated.CLASSES, 'CUSTOM_B']
CUSTOM_CLASSES = ['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C']
TRAITS = [*generated.TRAITS[:5], 'MISC_SHARES_VIA_AGGREGATE']
PROVIDERS = [*generated.PROVIDERS, generated.numbered(20)]
CONSUMERS = generated.CONSUMERS[:6]
NAMES = [*(f'provider-{uuid}' for uuid in PROVIDERS[:4]), *(f'new-{n}' for n in range(40))]
SUFFIXES = ['1', '2']

# Name of a property or of a parameter -> its values.
_VALUES: dict[str, list[Any]] = {
    'allocation_ratio': [1.0, 1.5, 16.0],
    'consumer_generation': [*CURRENT, None],
    'consumer_type': ['INSTANCE', 'MIGRATION'],
    'consumer_uuid': CONSUMERS,
    'group_policy': ['none', 'isolate'],
    'in_tree': PROVIDERS,
    'limit': [1, 3, 20],
    'max_unit': [4, 1000],
    'min_unit': [1, 2],
    'parent_provider_uuid': [*PROVIDERS[:4], None],
    'project_id': ['project-1', 'project-2'],
    'reserved': [0, 1],
    'resource_class': CLASSES,
    'resource_provider_generation': [*CURRENT, STALE],
    'step_size': [1, 2],
    'total': [1, 10, 2000],
    'user_id': ['user-1', 'user-2'],
    'uuid': PROVIDERS,
}
# Name of an array -> the values of its items.
_ITEMS = {'aggregates': generated.AGGREGATES, 'traits': TRAITS}
# Parameters and properties with the name `name`: the first segment of the path -> values.
_NAMES = {
    'resource_classes': [*CUSTOM_CLASSES, 'VCPU'],
    'resource_providers': NAMES,
    'traits': [*TRAITS, 'CUSTOM_NEW'],
}
_TRAIT_FILTERS = ['in:CUSTOM_T,HW_CPU_X86_VMX', 'startswith:HW_CPU', 'startswith:CUSTOM_', 'x:y']
_FILTERS = [
    text.format(*pair)
    for pair in itertools.permutations(TRAITS, 2)
    for text in ('{}', '!{}', '{},{}', '{},!{}', 'in:{},{}')
]
# Query parameter -> its values; those that the document does not allow are omitted.
_TEXTS = {
    'resources': [
        text.format(*pair)
        for pair in itertools.permutations(CLASSES, 2)
        for text in ('{}:1', '{}:2', '{}:1,{}:3')
    ],
    'required': _FILTERS,
    'root_required': _FILTERS,
    'member_of': [
        text.format(*pair)
        for pair in itertools.permutations(generated.AGGREGATES, 2)
        for text in ('{}', '!{}', 'in:{},{}', '!in:{},{}')
    ],
    'same_subtree': [*SUFFIXES, ','.join(SUFFIXES)],
}
# Without these parameters, most requests for candidates fail.
_ALWAYS = ('group_policy', 'request_groups')
_GROUP_KEY = re.compile(r'\^([a-z_]+)\[.*')


def restricted(document: Schema) -> Schema:
    """Return a copy of the document of a microversion with only known values in requests."""
    result = copy.deepcopy(document)
    schemas = result['components']['schemas']
    for path, operations in result['paths'].items():
        collection = path.split('/')[1]
        for operation in operations.values():
            for parameter in operation['parameters']:
                if 'schema' in parameter:
                    parameter['schema'] = _parameter(parameter, collection)
                    parameter['required'] |= parameter['name'] in _ALWAYS
            for content in operation.get('requestBody', {}).get('content', {}).values():
                if '$ref' in content['schema']:  # otherwise, the service ignores the body
                    name = content['schema']['$ref'].rpartition('/')[2]
                    schemas[name] = _body(schemas[name], '', collection)
    return result


# Parameters -------------------------------------------------------------------


def _parameter(parameter: Schema, collection: str) -> Schema:
    name, schema = parameter['name'], parameter['schema']
    if 'patternProperties' in schema:
        return _groups(schema['patternProperties'])
    if schema['type'] == 'array':
        return {**schema, 'items': _text(name, schema['items']), 'maxItems': 3}
    if parameter['in'] == 'query' and name in _TEXTS:
        return _text(name, schema)
    if parameter['in'] == 'query' and (collection, name) == ('traits', 'name'):
        return {'enum': _TRAIT_FILTERS}
    return _body(schema, name, collection)


def _groups(members: Schema) -> Schema:
    """Return the schema of the parameters of up to two request groups."""
    properties = {}
    for key, schema in members.items():
        match = _GROUP_KEY.fullmatch(key)
        assert match is not None
        name = match.group(1)
        for suffix in SUFFIXES:
            properties[f'{name}{suffix}'] = (
                {'enum': PROVIDERS} if name == 'in_tree' else _text(name, schema)
            )
    return {
        'type': 'object',
        'properties': properties,
        'required': [f'resources{suffix}' for suffix in SUFFIXES],
        'additionalProperties': False,
    }


def _text(name: str, schema: Schema) -> Schema:
    """Return the schema of a query parameter whose value lists at most two names or UUIDs."""
    allowed = (text for text in _TEXTS[name] if re.search(schema['pattern'], text))
    return {'enum': list(dict.fromkeys(allowed))}


# Bodies -----------------------------------------------------------------------


def _body(schema: Schema, name: str, collection: str) -> Schema:
    """Return the schema of a property, with known values at any depth.

    :param name: the name of the property, or of the parameter in the path
    """
    if name == 'name' and collection in _NAMES:
        return {'enum': _NAMES[collection]}
    if name in _VALUES:
        return {'enum': _VALUES[name]}
    if schema.get('type') == 'array':
        return _array(schema, name, collection)
    if schema.get('type') == 'object':
        return _object(schema, collection)
    return schema


def _array(schema: Schema, name: str, collection: str) -> Schema:
    values = _ITEMS.get(name or collection)
    if values is None and re.search(schema['items'].get('pattern', 'x^'), PROVIDERS[0]):
        values = generated.AGGREGATES if collection == 'resource_providers' else PROVIDERS
    items = {'enum': values} if values else _body(schema['items'], '', collection)
    return {**schema, 'items': items, 'maxItems': 3}


def _object(schema: Schema, collection: str) -> Schema:
    result = dict(schema)
    if 'properties' in schema:
        result['properties'] = {
            key: _body(one, key, collection) for key, one in schema['properties'].items()
        }
    values = schema.get('additionalProperties')
    if isinstance(values, dict):
        if values.get('type') == 'integer':
            values = {'enum': [1, 2, 3]}
        result['additionalProperties'] = _body(values, '', collection)
        result['propertyNames'] = {'enum': _keys(values)}
        result['maxProperties'] = 3
    return result


def _keys(values: Schema) -> list[str]:
    """Return the keys of an object with values of a schema."""
    properties = values.get('properties', {})
    if 'project_id' in properties:
        return CONSUMERS
    if 'resources' in properties or 'inventories' in properties:
        return PROVIDERS
    return CLASSES
