"""Names in OpenAPI documents: operation ids, tags, and names of component schemas.

Code generators of OpenStack refer to the names in the combined document.
"""

from typing import Any

from placement.handlers.operation import Operation

TITLE = 'OpenStack Placement API'

# Tag -> its description.
TAGS = {
    'versions': 'The microversions that the service supports.',
    'resource_classes': 'The kinds of resources, for example `VCPU`.',
    'resource_providers': (
        'The resource providers with their inventories, usages, aggregates, traits, and '
        'allocations.'
    ),
    'allocations': 'The resources that consumers use.',
    'allocation_candidates': 'The search for resource providers.',
    'traits': 'The qualitative properties that resource providers can have.',
    'usages': 'The usages of projects and users.',
    'reshaper': 'The change of inventories and of allocations against them in one transaction.',
}


def operation_id(operation: Operation) -> str:
    """Return the id of an operation in the combined document: `allocations/consumer_uuid:put`."""
    path = operation.path.strip('/').replace('{', '').replace('}', '')
    return f'{path}:{operation.method.lower()}'


def function_name(title: str) -> str:
    """Return the id of an operation as code generators for clients use it: `list_traits`."""
    return title.lower().replace(' ', '_')


def tag(path: str) -> str:
    """Return the tag of a path: its first segment, or `versions` for the version document."""
    return path.split('/')[1] or 'versions'


def component(operation: Operation) -> str:
    """Return the beginning of the names of the component schemas of an operation.

    It consists of the names of the collections in the path, and of the name of the handler. The
    last name is singular if a parameter follows it: `/allocations/{consumer_uuid}` is `Allocation`.
    """
    segments = operation.path.strip('/').split('/')
    collections = [segment for segment in segments if segment and not segment.startswith('{')]
    if segments[-1].startswith('{'):
        collections[-1] = _singular(collections[-1])
    handler: Any = operation.handler
    return ''.join(map(_capitalized, [*collections, handler.__name__]))


def _singular(noun: str) -> str:
    for plural, singular in (('ies', 'y'), ('sses', 'ss'), ('s', '')):
        if noun.endswith(plural):
            return noun.removesuffix(plural) + singular
    return noun


def _capitalized(name: str) -> str:
    return '_'.join(word.capitalize() for word in name.split('_'))
