"""The schemas of the bodies of successful responses, by microversion."""

from collections.abc import Callable
from typing import Any

from api_reference.texts import SHARED
from placement import microversion
from placement.handlers.inventory import FIELDS
from placement.handlers.resource_provider import LINKS
from placement.microversion import Variants, Version
from placement.schemas import IDENTIFIER, RESOURCE_CLASS_NAME, UUID, UUID_KEY, Schema, closed


def described(schema: Schema, description: str) -> dict[str, Any]:
    """Return a schema with a description."""
    return {**schema, 'description': description}


def value(kind: str | list[str], description: str, **limits: Any) -> dict[str, Any]:
    """Return the schema of a value of a type.

    :param limits: additional keywords of the schema
    """
    return {'type': kind, **limits, 'description': description}


def keyed(keys: str, values: Schema, **others: Any) -> dict[str, Any]:
    """Return the schema of an object whose keys match a pattern.

    :param values: the schema of the values
    :param others: additional keywords of the schema
    """
    return {
        'type': 'object',
        'patternProperties': {keys: values},
        'additionalProperties': False,
        **others,
    }


def array(items: Schema, **others: Any) -> dict[str, Any]:
    """Return the schema of an array.

    :param others: additional keywords of the schema
    """
    return {'type': 'array', 'items': items, **others}


def _by_version(schema: Callable[[Version], Schema], *since: Version) -> Variants[Schema]:
    """Return the variants of a schema that begin with the given microversions."""
    return Variants({version: schema(version) for version in since})


def _links(*relations: str) -> Schema:
    """Return the schema of `links` with one link for each relation."""
    link = closed(
        {
            'rel': value(
                'string',
                'The relation of the linked resource to this object.',
                enum=list(relations),
            ),
            'href': value(
                'string',
                'The path of the linked resource. It begins with the path at which the API is '
                'mounted.',
            ),
        }
    )
    return array(
        link,
        minItems=len(relations),
        maxItems=len(relations),
        description='Links to this object and to related resources.',
    )


_GENERATION = value('integer', 'The generation of the resource provider.', minimum=0)
_CLASS_NAME = value('string', 'The name of the resource class.', pattern=RESOURCE_CLASS_NAME)
_PROVIDER_UUID = described(UUID, 'The UUID of the resource provider.')
_TRAIT_NAMES = array(described(IDENTIFIER, 'The name of a trait.'))
# A resource class name -> an integer amount.
_AMOUNTS = keyed(
    RESOURCE_CLASS_NAME, value('integer', 'An amount of the resource class.', minimum=0)
)

# The version document, resource classes, traits, aggregates --------------------

_NUMBER = r'^[0-9]+\.[0-9]+\Z'
_MAJOR_VERSION = closed(
    {
        'id': value('string', 'The identifier of the major version of the API.'),
        'max_version': value('string', 'The latest supported microversion.', pattern=_NUMBER),
        'min_version': value('string', 'The earliest supported microversion.', pattern=_NUMBER),
        'status': value('string', 'The status of the major version.', enum=['CURRENT']),
        'links': _links('self'),
    }
)
_VERSIONS = array(
    _MAJOR_VERSION,
    minItems=1,
    maxItems=1,
    description='The major versions of the API. Placement has one.',
)
VERSIONS = Variants({microversion.MIN_VERSION: closed({'versions': _VERSIONS})})

_CLASS = closed({'name': _CLASS_NAME, 'links': _links('self')})
_CLASSES = array(_CLASS, description='All standard and custom resource classes.')
RESOURCE_CLASS = Variants({microversion.RESOURCE_CLASSES: _CLASS})
RESOURCE_CLASSES = Variants({microversion.RESOURCE_CLASSES: closed({'resource_classes': _CLASSES})})

_FOUND_TRAITS = described(_TRAIT_NAMES, 'The names of the traits that match the query.')
_OWN_TRAITS = described(_TRAIT_NAMES, 'The names of the traits of the provider.')
TRAITS = Variants({microversion.TRAITS: closed({'traits': _FOUND_TRAITS})})
PROVIDER_TRAITS = Variants(
    {
        microversion.TRAITS: closed(
            {'traits': _OWN_TRAITS, 'resource_provider_generation': _GENERATION}
        )
    }
)

_AGGREGATES = array(
    value('string', 'The UUID of an aggregate, as written.', maxLength=36),
    description='The UUIDs of all aggregates of the resource provider.',
)
AGGREGATES = Variants(
    {
        microversion.AGGREGATES: closed({'aggregates': _AGGREGATES}),
        microversion.AGGREGATE_GENERATION: closed(
            {'aggregates': _AGGREGATES, 'resource_provider_generation': _GENERATION}
        ),
    }
)

# Resource providers -----------------------------------------------------------

_PARENT = value(
    ['string', 'null'],
    'The UUID of the parent of the provider. It is null for a root provider.',
    format='uuid',
)
_ROOT = 'The UUID of the root provider of the tree.'
_TREE = {
    'parent_provider_uuid': _PARENT,
    'root_provider_uuid': described(UUID, f'{_ROOT} For a root provider, it is its own UUID.'),
}


def _provider(version: Version) -> Schema:
    """Return the schema of a provider in a microversion."""
    relations = [name for name, since in LINKS if version >= since]
    return closed(
        {
            'uuid': _PROVIDER_UUID,
            'name': value('string', 'The name of the resource provider.'),
            'generation': _GENERATION,
            'links': _links('self', *relations),
            **(_TREE if version >= microversion.NESTED_PROVIDERS else {}),
        }
    )


def _providers(version: Version) -> Schema:
    found = array(_provider(version), description='The resource providers that match the query.')
    return closed({'resource_providers': found})


_CHANGES_OF_PROVIDERS = (
    microversion.MIN_VERSION,
    microversion.AGGREGATES,
    microversion.TRAITS,
    microversion.ALLOCATIONS_LINK,
    microversion.NESTED_PROVIDERS,
)
PROVIDER = _by_version(_provider, *_CHANGES_OF_PROVIDERS)
PROVIDERS = _by_version(_providers, *_CHANGES_OF_PROVIDERS)
# The body of the response to POST, which was empty in earlier microversions.
CREATED_PROVIDER = _by_version(_provider, microversion.PROVIDER_POST_RETURNS_BODY)

# Inventories and usages -------------------------------------------------------

_FIELDS = {name: described(schema, SHARED['inventory'][name]) for name, schema in FIELDS.items()}
_INVENTORIES = keyed(
    RESOURCE_CLASS_NAME,
    described(closed(_FIELDS), 'The inventory of one resource class.'),
    description='All inventories of the provider. The keys are names of resource classes.',
)
INVENTORY = Variants(
    {microversion.MIN_VERSION: closed({'resource_provider_generation': _GENERATION, **_FIELDS})}
)
INVENTORIES = Variants(
    {
        microversion.MIN_VERSION: closed(
            {'resource_provider_generation': _GENERATION, 'inventories': _INVENTORIES}
        )
    }
)

_PROVIDER_USAGES = described(
    _AMOUNTS,
    'The usage of each resource class of which the provider has an inventory. The keys are names '
    'of resource classes.',
)
PROVIDER_USAGES = Variants(
    {
        microversion.MIN_VERSION: closed(
            {'resource_provider_generation': _GENERATION, 'usages': _PROVIDER_USAGES}
        )
    }
)

_GROUP = {
    'type': 'object',
    'properties': {
        'consumer_count': value('integer', 'The number of consumers in the group.', minimum=1)
    },
    'required': ['consumer_count'],
    'patternProperties': {
        RESOURCE_CLASS_NAME: value(
            'integer',
            'The usage of the resource class by the consumers in the group.',
            minimum=1,
        )
    },
    'additionalProperties': False,
    'description': (
        'The usages of the consumers of one consumer type. The other keys are names of resource '
        'classes.'
    ),
}
_TOTAL_USAGES = described(
    _AMOUNTS,
    'The usage of each resource class that has allocations. The keys are names of resource '
    'classes.',
)
_GROUPED_USAGES = keyed(
    r'^([A-Z0-9_]+|all|unknown)\Z',
    _GROUP,
    description=(
        'The usages, grouped by consumer type. The keys are consumer types. The group `unknown` '
        'contains the consumers without a type.'
    ),
)
USAGES = Variants(
    {
        microversion.USAGES: closed({'usages': _TOTAL_USAGES}),
        microversion.CONSUMER_TYPES: closed({'usages': _GROUPED_USAGES}),
    }
)

# Allocations ------------------------------------------------------------------

_USED = described(
    _AMOUNTS, 'The amounts that the consumer uses. The keys are names of resource classes.'
)
_CONSUMER_GENERATION = value('integer', 'The generation of the consumer.', minimum=0)
_ALLOCATIONS = keyed(
    # Older releases stored some UUIDs in other forms.
    '.',
    described(
        closed({'generation': _GENERATION, 'resources': _USED}),
        'The allocations of the consumer from one resource provider.',
    ),
    description='The allocations of the consumer. The keys are UUIDs of resource providers.',
)
# The properties of a consumer other than `allocations`, and their first microversions.
_OF_CONSUMER = {
    'project_id': (
        microversion.ALLOCATIONS_BY_PROVIDER,
        described(IDENTIFIER, SHARED['claim']['project_id']),
    ),
    'user_id': (
        microversion.ALLOCATIONS_BY_PROVIDER,
        described(IDENTIFIER, SHARED['claim']['user_id']),
    ),
    'consumer_generation': (microversion.CONSUMER_GENERATION, _CONSUMER_GENERATION),
    'consumer_type': (
        microversion.CONSUMER_TYPES,
        value('string', 'The type of the consumer, or `unknown` if the consumer has no type.'),
    ),
}


def _consumer(version: Version) -> Schema:
    """Return the schema of the allocations of a consumer in a microversion."""
    properties = {
        name: described(
            schema, f'{schema["description"]} Missing if the consumer has no allocations.'
        )
        for name, (since, schema) in _OF_CONSUMER.items()
        if version >= since
    }
    result = closed({'allocations': _ALLOCATIONS, **properties}, ['allocations'])
    if properties:
        result |= {
            'if': {'properties': {'allocations': {'maxProperties': 0}}},
            'then': {'maxProperties': 1},
            'else': {'minProperties': len(result['properties'])},
        }
    return result


CONSUMER_ALLOCATIONS = _by_version(
    _consumer,
    microversion.MIN_VERSION,
    microversion.ALLOCATIONS_BY_PROVIDER,
    microversion.CONSUMER_GENERATION,
    microversion.CONSUMER_TYPES,
)


def _against_provider(version: Version) -> Schema:
    """Return the schema of the allocations against a provider in a microversion."""
    of_consumer: dict[str, Schema] = {'resources': _USED}
    if version >= microversion.CONSUMER_GENERATION:
        of_consumer['consumer_generation'] = _CONSUMER_GENERATION
    allocations = keyed(
        '.',
        described(closed(of_consumer), 'The allocations of one consumer.'),
        description='The allocations against the provider. The keys are UUIDs of consumers.',
    )
    return closed({'allocations': allocations, 'resource_provider_generation': _GENERATION})


PROVIDER_ALLOCATIONS = _by_version(
    _against_provider, microversion.MIN_VERSION, microversion.CONSUMER_GENERATION
)

# Allocation candidates --------------------------------------------------------

_RESOURCES = keyed(
    RESOURCE_CLASS_NAME,
    value('integer', 'The amount of the resource class.', minimum=1),
    minProperties=1,
    description='The amounts to allocate. The keys are names of resource classes.',
)
_FROM_EACH = 'The allocations from each resource provider of the candidate.'
_PROVIDER = described(closed({'uuid': _PROVIDER_UUID}), 'The resource provider.')
_LISTED_REQUESTS = array(
    closed({'resource_provider': _PROVIDER, 'resources': _RESOURCES}),
    minItems=1,
    description=_FROM_EACH,
)
_KEYED_REQUESTS = keyed(
    UUID_KEY,
    described(closed({'resources': _RESOURCES}), 'The allocations from one resource provider.'),
    minProperties=1,
    description=f'{_FROM_EACH} The keys are UUIDs of resource providers.',
)
_MAPPINGS = keyed(
    r'^[a-zA-Z0-9_-]{0,64}\Z',
    array(
        described(UUID, 'The UUID of a resource provider.'),
        minItems=1,
        description='The UUIDs of the providers that satisfy the request group.',
    ),
    description=(
        'The providers of each request group. The keys are suffixes of request groups; the key of '
        'the unsuffixed group is empty.'
    ),
)
_CAPACITY_AND_USAGE = closed(
    {
        'capacity': value(
            'integer',
            '`(total - reserved) * allocation_ratio` of the inventory, truncated to an integer.',
        ),
        'used': value('integer', 'The sum of the allocations of the resource class.', minimum=0),
    }
)
_SUMMARY_RESOURCES = keyed(
    RESOURCE_CLASS_NAME,
    described(_CAPACITY_AND_USAGE, 'The capacity and the usage of the resource class.'),
)


def _request(version: Version) -> Schema:
    """Return the schema of one element of `allocation_requests`."""
    by_provider = version >= microversion.ALLOCATIONS_BY_PROVIDER
    properties = {'allocations': _KEYED_REQUESTS if by_provider else _LISTED_REQUESTS}
    if version >= microversion.MAPPINGS:
        properties['mappings'] = _MAPPINGS
    return described(closed(properties), 'One allocation candidate.')


def _summary(version: Version) -> Schema:
    """Return the schema of one value of `provider_summaries`."""
    classes = 'requested resource class'
    if version >= microversion.SUMMARIES_ALL_CLASSES:
        classes = 'resource class of which the provider has an inventory'
    keys = 'The keys are names of resource classes.'
    properties: dict[str, Schema] = {
        'resources': described(
            _SUMMARY_RESOURCES, f'The capacity and the usage of each {classes}. {keys}'
        )
    }
    if version >= microversion.CANDIDATES_REQUIRED:
        properties['traits'] = _OWN_TRAITS
    if version >= microversion.NESTED_CANDIDATES:
        properties['parent_provider_uuid'] = _PARENT
        properties['root_provider_uuid'] = described(UUID, _ROOT)
    return described(closed(properties), 'One resource provider.')


def _candidates(version: Version) -> Schema:
    requests = array(
        _request(version),
        description=(
            'The allocation candidates. The body of `PUT /allocations/{consumer_uuid}` can contain '
            'all members of a candidate unchanged.'
        ),
    )
    summaries = keyed(
        UUID_KEY,
        _summary(version),
        description='The resource providers. The keys are UUIDs of resource providers.',
    )
    return closed({'allocation_requests': requests, 'provider_summaries': summaries})


CANDIDATES = _by_version(
    _candidates,
    microversion.ALLOCATION_CANDIDATES,
    microversion.ALLOCATIONS_BY_PROVIDER,
    microversion.CANDIDATES_REQUIRED,
    microversion.SUMMARIES_ALL_CLASSES,
    microversion.NESTED_CANDIDATES,
    microversion.MAPPINGS,
)
