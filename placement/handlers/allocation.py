"""Handlers of the allocations of a consumer and of a resource provider."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import webob

from placement import exception, microversion, wsgi_wrapper
from placement.claims import delete, replace
from placement.claims.model import Claim
from placement.context import RequestContext
from placement.http import reply, request
from placement.microversion import Version
from placement.objects import allocation
from placement.policies import allocation as policies
from placement.schemas import allocation as schemas

_UNKNOWN_TYPE = 'unknown'


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def list_for_consumer(req: webob.Request) -> webob.Response:
    """GET /allocations/{consumer_uuid}: list the allocations of a consumer.

    If the consumer does not exist, the list is empty.
    """
    request.context(req).can(policies.LIST)
    found = allocation.list_by_consumer(request.path_item(req, 'consumer_uuid'))
    if found is None:
        return reply.json_reply(req, {'allocations': {}})
    document = _consumer_document(found, request.version(req))
    return reply.json_reply(req, document, last_modified=found.last_modified)


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def list_for_resource_provider(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/allocations: list the allocations against a provider."""
    request.context(req).can(policies.PROVIDER_LIST)
    generation, consumers, last_modified = allocation.list_by_provider(
        request.path_item(req, 'uuid')
    )
    with_generation = request.version(req) >= microversion.CONSUMER_GENERATION
    allocations: dict[str, dict[str, Any]] = {}
    for consumer_uuid, stored in consumers.items():
        allocations[consumer_uuid] = {'resources': stored.resources}
        if with_generation:
            allocations[consumer_uuid]['consumer_generation'] = stored.generation
    document = {
        'allocations': allocations,
        'resource_provider_generation': generation,
    }
    return reply.json_reply(req, document, last_modified=last_modified)


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
def set_allocations_for_consumer(req: webob.Request) -> webob.Response:
    """PUT /allocations/{consumer_uuid}: replace all allocations of one consumer."""
    context, version = request.context(req), request.version(req)
    context.can(policies.UPDATE)
    text = request.path_item(req, 'consumer_uuid')
    if not request.is_uuid(text):
        raise exception.InvalidConsumerUuid(text)
    data = request.extract_json(req, schemas.PUT.pick(version))
    to_claim = claim_maker(context, version)
    claims = [to_claim(request.normalize_uuid(text), data)]
    min_attempts = context.config.placement.allocation_conflict_retry_count
    replace.replace_allocations(claims, min_attempts)
    return reply.empty_reply(req)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.POST_ALLOCATIONS)
@request.require_content(request.JSON)
def set_allocations(req: webob.Request) -> webob.Response:
    """POST /allocations: replace all allocations of one or more consumers."""
    context, version = request.context(req), request.version(req)
    context.can(policies.MANAGE)
    data = request.extract_json(req, schemas.POST.pick(version))
    to_claim = claim_maker(context, version)
    claims = [to_claim(consumer, one) for consumer, one in data.items()]
    min_attempts = context.config.placement.allocation_conflict_retry_count
    replace.replace_allocations(claims, min_attempts)
    return reply.empty_reply(req)


@wsgi_wrapper.PlacementWsgify
def delete_allocations(req: webob.Request) -> webob.Response:
    """DELETE /allocations/{consumer_uuid}: delete all allocations of one consumer."""
    request.context(req).can(policies.DELETE)
    delete.delete_allocations(request.path_item(req, 'consumer_uuid'))
    return reply.empty_reply(req, HTTPStatus.NO_CONTENT)


def claim_maker(
    context: RequestContext, version: Version
) -> Callable[[str, Mapping[str, Any]], Claim]:
    """Return a function that creates a `Claim` from a consumer UUID and a validated body."""
    checks_generation = version >= microversion.CONSUMER_GENERATION
    by_provider = version >= microversion.ALLOCATIONS_BY_PROVIDER
    options = context.config.placement

    def to_claim(consumer_uuid: str, data: Mapping[str, Any]) -> Claim:
        given = data.get('consumer_generation')
        requested = data['allocations']
        return Claim(
            consumer_uuid=consumer_uuid,
            # Before microversion 1.8, bodies contain neither a project nor a user.
            project_id=data.get('project_id', options.incomplete_consumer_project_id),
            user_id=data.get('user_id', options.incomplete_consumer_user_id),
            consumer_type=data.get('consumer_type'),
            generation=None if given is None else int(given),
            checks_generation=checks_generation,
            allocations=_amounts(requested if by_provider else _keyed_by_provider(requested)),
        )

    return to_claim


def _keyed_by_provider(requested: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Convert the list of older bodies to the object that bodies contain since microversion 1.12.

    If the list contains a provider more than once, Placement uses the last item for this provider.
    """
    return {one['resource_provider']['uuid']: one for one in requested}


def _amounts(requested: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the requested amounts: provider UUID -> resource class name -> amount."""
    # JSON does not distinguish integers from floats, and JSON Schema accepts 2.0 as an integer.
    return {
        uuid: {name: int(amount) for name, amount in one['resources'].items()}
        for uuid, one in requested.items()
    }


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
