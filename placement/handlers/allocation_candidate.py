"""Handler of allocation candidates: where a workload could run."""

import webob

from placement import microversion, util, wsgi_wrapper
from placement.candidates import render, request, search
from placement.policies import allocation_candidate as policies


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.ALLOCATION_CANDIDATES)
@util.check_accept(util.JSON)
def list_allocation_candidates(req: webob.Request) -> webob.Response:
    """GET /allocation_candidates."""
    context, version = util.context(req), util.version(req)
    context.can(policies.LIST)
    query = request.parse(util.query_items(req.environ), version)
    answer = search.find(context, query)
    return util.json_reply(req, render.render(answer, render.Shape.of(version)))
