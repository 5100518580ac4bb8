"""Handlers of the allocations of a consumer and of a resource provider."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from oslo_config import cfg

from placement import grammar, microversion
from placement.claims import write
from placement.claims.claim import Claim
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import Version
from placement.objects import allocation

_UNKNOWN_TYPE = 'unknown'


def list_for_consumer(call: Call) -> Reply:
    """GET /allocations/{consumer_uuid}: list the allocations of a consumer.

    If the consumer does not exist, the list is empty.
    """
    found = allocation.list_by_consumer(call.path['consumer_uuid'])
    if found is None:
        return reply.json_reply(call, {'allocations': {}})
    document = _consumer_document(found, call.version)
    return reply.json_reply(call, document, last_modified=found.last_modified)


def list_for_resource_provider(call: Call) -> Reply:
    """GET /resource_providers/{uuid}/allocations: list the allocations against a provider."""
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


def set_allocations_for_consumer(call: Call) -> Reply:
    """PUT /allocations/{consumer_uuid}: replace all allocations of one consumer."""
    return _replace(call, {grammar.normalize_uuid(call.path['consumer_uuid']): call.body})


def set_allocations(call: Call) -> Reply:
    """POST /allocations: replace all allocations of one or more consumers."""
    return _replace(call, call.body)


def delete_allocations(call: Call) -> Reply:
    """DELETE /allocations/{consumer_uuid}: delete all allocations of one consumer."""
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
