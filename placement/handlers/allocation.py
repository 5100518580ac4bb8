"""Handlers of allocations: of consumers, and on a resource provider."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import webob

from placement import exception, microversion, util, wsgi_wrapper
from placement.context import RequestContext
from placement.microversion import Version
from placement.objects import allocation
from placement.objects.claim import Claim
from placement.policies import allocation as policies
from placement.schemas import allocation as schemas

_UNKNOWN_TYPE = 'unknown'


@wsgi_wrapper.PlacementWsgify
@util.check_accept(util.JSON)
def list_for_consumer(req: webob.Request) -> webob.Response:
    """GET /allocations/{consumer_uuid}; a consumer that nobody knows has none."""
    util.context(req).can(policies.LIST)
    held = allocation.list_by_consumer(util.path_item(req, 'consumer_uuid'))
    if held is None:
        return util.json_reply(req, {'allocations': {}})
    document = _held_by_consumer(held, util.version(req))
    return util.json_reply(req, document, last_modified=held.last_modified)


@wsgi_wrapper.PlacementWsgify
@util.check_accept(util.JSON)
def list_for_resource_provider(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/allocations."""
    util.context(req).can(policies.PROVIDER_LIST)
    generation, shares, last_modified = allocation.list_by_provider(util.path_item(req, 'uuid'))
    with_generation = util.version(req) >= microversion.CONSUMER_GENERATION
    allocations: dict[str, dict[str, Any]] = {}
    for consumer_uuid, share in shares.items():
        allocations[consumer_uuid] = {'resources': share.resources}
        if with_generation:
            allocations[consumer_uuid]['consumer_generation'] = share.generation
    document = {
        'allocations': allocations,
        'resource_provider_generation': generation,
    }
    return util.json_reply(req, document, last_modified=last_modified)


@wsgi_wrapper.PlacementWsgify
@util.require_content(util.JSON)
def set_allocations_for_consumer(req: webob.Request) -> webob.Response:
    """PUT /allocations/{consumer_uuid}: replace all that the consumer has."""
    context, version = util.context(req), util.version(req)
    context.can(policies.UPDATE)
    text = util.path_item(req, 'consumer_uuid')
    if not util.is_uuid(text):
        raise exception.InvalidConsumerUuid(text)
    data = util.extract_json(req, schemas.PUT.pick(version))
    to_claim = claim_maker(context, version)
    claims = [to_claim(util.normalize_uuid(text), data)]
    allocation.replace(claims, context.config.placement.allocation_conflict_retry_count)
    return util.empty_reply(req)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.POST_ALLOCATIONS)
@util.require_content(util.JSON)
def set_allocations(req: webob.Request) -> webob.Response:
    """POST /allocations: replace all that each of several consumers has, or nothing."""
    context, version = util.context(req), util.version(req)
    context.can(policies.MANAGE)
    data = util.extract_json(req, schemas.POST.pick(version))
    to_claim = claim_maker(context, version)
    claims = [to_claim(consumer, one) for consumer, one in data.items()]
    allocation.replace(claims, context.config.placement.allocation_conflict_retry_count)
    return util.empty_reply(req)


@wsgi_wrapper.PlacementWsgify
def delete_allocations(req: webob.Request) -> webob.Response:
    """DELETE /allocations/{consumer_uuid}."""
    util.context(req).can(policies.DELETE)
    allocation.delete_by_consumer(util.path_item(req, 'consumer_uuid'))
    return util.empty_reply(req, HTTPStatus.NO_CONTENT)


def claim_maker(
    context: RequestContext, version: Version
) -> Callable[[str, Mapping[str, Any]], Claim]:
    """A function from a consumer and its valid body to a Claim, for one microversion."""
    checks_generation = version >= microversion.CONSUMER_GENERATION
    by_provider = version >= microversion.ALLOCATIONS_BY_PROVIDER
    options = context.config.placement

    def to_claim(consumer_uuid: str, data: Mapping[str, Any]) -> Claim:
        given = data.get('consumer_generation')
        asked = data['allocations']
        return Claim(
            consumer_uuid=consumer_uuid,
            # Until 1.8 nobody said whose consumer it is.
            project_id=data.get('project_id', options.incomplete_consumer_project_id),
            user_id=data.get('user_id', options.incomplete_consumer_user_id),
            consumer_type=data.get('consumer_type'),
            generation=None if given is None else int(given),
            checks_generation=checks_generation,
            allocations=_amounts(asked if by_provider else _keyed_by_provider(asked)),
        )

    return to_claim


def _keyed_by_provider(asked: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The form of bodies from 1.12 on, made of the older one. The last of repeats counts."""
    return {one['resource_provider']['uuid']: one for one in asked}


def _amounts(asked: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    # JSON has one kind of number: 2.0 is an integer as well.
    return {
        uuid: {name: int(amount) for name, amount in one['resources'].items()}
        for uuid, one in asked.items()
    }


def _held_by_consumer(held: allocation.ConsumerAllocations, version: Version) -> dict[str, Any]:
    document: dict[str, Any] = {'allocations': held.allocations}
    if version >= microversion.ALLOCATIONS_BY_PROVIDER:
        document['project_id'] = held.project_id
        document['user_id'] = held.user_id
    if version >= microversion.CONSUMER_GENERATION:
        document['consumer_generation'] = held.consumer_generation
    if version >= microversion.CONSUMER_TYPES:
        document['consumer_type'] = held.consumer_type or _UNKNOWN_TYPE
    return document
