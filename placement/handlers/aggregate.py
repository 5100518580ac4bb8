"""Handlers of the aggregates of a resource provider."""

from collections.abc import Sequence
from typing import Any

import webob

from placement import microversion, wsgi_wrapper
from placement.handlers import body
from placement.http import reply, request
from placement.objects import aggregate
from placement.policies import aggregate as policies
from placement.schemas import aggregate as schemas


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
@microversion.version_handler(microversion.AGGREGATES)
def get_aggregates(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/aggregates: list the aggregates of a provider."""
    request.context(req).can(policies.LIST)
    generation, uuids = aggregate.list_by_provider(request.path_item(req, 'uuid'))
    return reply.json_reply(req, _document(req, uuids, generation))


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
@microversion.version_handler(microversion.AGGREGATES)
def set_aggregates(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}/aggregates: replace the aggregates of a provider."""
    version = request.version(req)
    request.context(req).can(policies.UPDATE)
    uuid = request.path_item(req, 'uuid')
    data = body.about_provider(req, uuid, schemas.PUT.pick(version))
    if version < microversion.AGGREGATE_GENERATION:
        uuids, given = data, None
    else:
        uuids, given = data['aggregates'], int(data['resource_provider_generation'])
    generation = aggregate.replace(uuid, uuids, given)
    return reply.json_reply(req, _document(req, uuids, generation))


def _document(req: webob.Request, uuids: Sequence[str], generation: int) -> dict[str, Any]:
    document: dict[str, Any] = {'aggregates': uuids}
    if request.version(req) >= microversion.AGGREGATE_GENERATION:
        document['resource_provider_generation'] = generation
    return document
