"""Handlers of the aggregates of a resource provider."""

from collections.abc import Sequence
from typing import Any

import webob

from placement import microversion, util, wsgi_wrapper
from placement.handlers import body
from placement.objects import aggregate
from placement.policies import aggregate as policies
from placement.schemas import aggregate as schemas


@wsgi_wrapper.PlacementWsgify
@util.check_accept(util.JSON)
@microversion.version_handler(microversion.AGGREGATES)
def get_aggregates(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/aggregates: the aggregates of a provider."""
    util.context(req).can(policies.LIST)
    generation, uuids = aggregate.list_by_provider(util.path_item(req, 'uuid'))
    return util.json_reply(req, _document(req, uuids, generation))


@wsgi_wrapper.PlacementWsgify
@util.require_content(util.JSON)
@microversion.version_handler(microversion.AGGREGATES)
def set_aggregates(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}/aggregates: replace the aggregates of a provider."""
    version = util.version(req)
    util.context(req).can(policies.UPDATE)
    uuid = util.path_item(req, 'uuid')
    data = body.about_provider(req, uuid, schemas.PUT.pick(version))
    if version < microversion.AGGREGATE_GENERATION:
        uuids, given = data, None
    else:
        uuids, given = data['aggregates'], int(data['resource_provider_generation'])
    generation = aggregate.replace(uuid, uuids, given)
    return util.json_reply(req, _document(req, uuids, generation))


def _document(req: webob.Request, uuids: Sequence[str], generation: int) -> dict[str, Any]:
    document: dict[str, Any] = {'aggregates': uuids}
    if util.version(req) >= microversion.AGGREGATE_GENERATION:
        document['resource_provider_generation'] = generation
    return document
