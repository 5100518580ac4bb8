"""The allocations of a consumer and of a resource provider."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from oslo_config import cfg

from placement import exception, grammar, microversion
from placement.claims import write
from placement.claims.claim import Claim
from placement.handlers.operation import PathCheck, Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import MIN_VERSION, Variants, Version
from placement.objects import allocation
from placement.schemas import (
    GENERATION,
    IDENTIFIER,
    RESOURCE_CLASS_NAME,
    UUID,
    UUID_KEY,
    Schema,
    closed,
    keyed,
)

_UNKNOWN_TYPE = 'unknown'

_RESOURCES = keyed(RESOURCE_CLASS_NAME, {'type': 'integer', 'minimum': 1}, minProperties=1)
_LISTED = closed({'resource_provider': closed({'uuid': UUID}), 'resources': _RESOURCES})
_BY_PROVIDER = {
    # The generation is allowed because responses to GET contain it. Placement ignores it.
    **keyed(UUID_KEY, closed({'generation': GENERATION, 'resources': _RESOURCES}, ['resources'])),
    # For the error of a list, which is the form before microversion 1.12.
    'description': "of type 'object' with the UUIDs of providers as keys",
}
# Maps each request group to the UUIDs of its providers, as in allocation candidates. Placement
# ignores the mappings. The schema does not check the value for the unsuffixed group, because the
# empty key does not match the pattern.
_MAPPINGS = {
    'type': 'object',
    'minProperties': 1,
    'patternProperties': {'[a-zA-Z0-9_-]': {'type': 'array', 'minItems': 1, 'items': UUID}},
}

_OWNER = {'project_id': IDENTIFIER, 'user_id': IDENTIFIER}
_V1_0 = {'allocations': {'type': 'array', 'minItems': 1, 'items': _LISTED}}
# Since microversion 1.12, `allocations` is an object keyed by provider UUID. If this object is
# empty, all allocations of the consumer are deleted. POST, which is new in 1.13, always accepts an
# empty object; PUT accepts it since 1.28.
_V1_12 = {'allocations': {**_BY_PROVIDER, 'minProperties': 1}, **_OWNER}
_V1_13 = {'allocations': _BY_PROVIDER, **_OWNER}
_V1_28 = {**_V1_13, 'consumer_generation': {'type': ['integer', 'null']}}
_V1_34 = {**_V1_28, 'mappings': _MAPPINGS}
_V1_38 = {**_V1_34, 'consumer_type': {**IDENTIFIER, 'pattern': r'^[A-Z0-9_]+\Z'}}


def _claim(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of the allocations of one consumer."""
    return closed(properties, [name for name in properties if name != 'mappings'])


# The allocations of several consumers.
CLAIMS: Variants[Schema] = Variants(
    {
        since: keyed(UUID_KEY, _claim(properties), minProperties=1)
        for since, properties in (
            (microversion.POST_ALLOCATIONS, _V1_13),
            (microversion.CONSUMER_GENERATION, _V1_28),
            (microversion.MAPPINGS, _V1_34),
            (microversion.CONSUMER_TYPES, _V1_38),
        )
    }
)


@operation(
    'GET /resource_providers/{uuid}/allocations',
    since=MIN_VERSION,
    rule=Rule(
        'placement:resource_providers:allocations:list',
        'List the allocations of a resource provider.',
    ),
)
def list_for_resource_provider(call: Call) -> Reply:
    """List the allocations against a provider."""
    generation, consumers, last_modified = allocation.list_by_provider(call.path['uuid'])
    with_generation = call.version >= microversion.CONSUMER_GENERATION
    allocations: dict[str, dict[str, Any]] = {}
    for consumer_uuid, stored in consumers.items():
        allocations[consumer_uuid] = {'resources': stored.resources}
        if with_generation:
            allocations[consumer_uuid]['consumer_generation'] = stored.generation
    document = {
        'allocations': allocations,
        'resource_provider_generation': generation,
    }
    return reply.json_reply(call, document, last_modified=last_modified)


@operation(
    'POST /allocations',
    since=microversion.POST_ALLOCATIONS,
    rule=Rule('placement:allocations:manage', 'Replace the allocations of several consumers.'),
    body=CLAIMS,
)
def set_allocations(call: Call) -> Reply:
    """Replace all allocations of one or more consumers."""
    return _replace(call, call.body)


@operation(
    'GET /allocations/{consumer_uuid}',
    since=MIN_VERSION,
    rule=Rule('placement:allocations:list', 'List the allocations of a consumer.'),
)
def list_for_consumer(call: Call) -> Reply:
    """List the allocations of a consumer.

    If the consumer does not exist, the list is empty.
    """
    found = allocation.list_by_consumer(call.path['consumer_uuid'])
    if found is None:
        return reply.json_reply(call, {'allocations': {}})
    document = _consumer_document(found, call.version)
    return reply.json_reply(call, document, last_modified=found.last_modified)


@operation(
    'PUT /allocations/{consumer_uuid}',
    since=MIN_VERSION,
    rule=Rule('placement:allocations:update', 'Replace the allocations of a consumer.'),
    path_check=PathCheck(
        'consumer_uuid', UUID, lambda text, _: exception.InvalidConsumerUuid(text)
    ),
    body=Variants(
        {
            MIN_VERSION: _claim(_V1_0),
            microversion.ALLOCATION_OWNER: _claim({**_V1_0, **_OWNER}),
            microversion.ALLOCATIONS_BY_PROVIDER: _claim(_V1_12),
            microversion.CONSUMER_GENERATION: _claim(_V1_28),
            microversion.MAPPINGS: _claim(_V1_34),
            microversion.CONSUMER_TYPES: _claim(_V1_38),
        }
    ),
)
def set_allocations_for_consumer(call: Call) -> Reply:
    """Replace all allocations of one consumer."""
    return _replace(call, {grammar.normalize_uuid(call.path['consumer_uuid']): call.body})


@operation(
    'DELETE /allocations/{consumer_uuid}',
    since=MIN_VERSION,
    rule=Rule('placement:allocations:delete', 'Delete the allocations of a consumer.'),
)
def delete_allocations(call: Call) -> Reply:
    """Delete all allocations of one consumer."""
    write.delete_allocations(call.path['consumer_uuid'])
    return reply.empty_reply(call, HTTPStatus.NO_CONTENT)


def _replace(call: Call, requested: Mapping[str, Mapping[str, Any]]) -> Reply:
    """Replace the allocations of consumers.

    :param requested: the UUID of each consumer, and the part of the body about this consumer
    """
    conf = call.conf
    claims = [to_claim(conf, call.version, consumer, one) for consumer, one in requested.items()]
    write.replace_allocations(claims, conf.placement.allocation_conflict_retry_count)
    return reply.empty_reply(call)


def to_claim(
    conf: cfg.ConfigOpts, version: Version, consumer_uuid: str, data: Mapping[str, Any]
) -> Claim:
    """Return the claim of a consumer from a validated body."""
    given = data.get('consumer_generation')
    requested = data['allocations']
    if version < microversion.ALLOCATIONS_BY_PROVIDER:
        # Older bodies contain a list. If it contains a provider more than once, Placement uses the
        # last item for this provider.
        requested = {one['resource_provider']['uuid']: one for one in requested}
    return Claim(
        consumer_uuid=consumer_uuid,
        # Before microversion 1.8, bodies contain neither a project nor a user.
        project_id=data.get('project_id', conf.placement.incomplete_consumer_project_id),
        user_id=data.get('user_id', conf.placement.incomplete_consumer_user_id),
        consumer_type=data.get('consumer_type'),
        generation=None if given is None else int(given),
        checks_generation=version >= microversion.CONSUMER_GENERATION,
        # JSON does not distinguish integers from floats, and JSON Schema accepts 2.0 as an integer.
        allocations={
            uuid: {name: int(amount) for name, amount in one['resources'].items()}
            for uuid, one in requested.items()
        },
    )


def _consumer_document(found: allocation.ConsumerAllocations, version: Version) -> dict[str, Any]:
    document: dict[str, Any] = {'allocations': found.allocations}
    if version >= microversion.ALLOCATIONS_BY_PROVIDER:
        document['project_id'] = found.project_id
        document['user_id'] = found.user_id
    if version >= microversion.CONSUMER_GENERATION:
        document['consumer_generation'] = found.consumer_generation
    if version >= microversion.CONSUMER_TYPES:
        document['consumer_type'] = found.consumer_type or _UNKNOWN_TYPE
    return document
