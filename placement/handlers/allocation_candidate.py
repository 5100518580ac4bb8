"""The handler of GET /allocation_candidates."""

import logging

from oslo_config import cfg
import webob

from placement import microversion, wsgi_wrapper
from placement.candidates import render, search
from placement.candidates import request as candidates_request
from placement.http import log_text, reply, request
from placement.policies import allocation_candidate as policies

LOG = logging.getLogger(__name__)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.ALLOCATION_CANDIDATES)
@request.check_accept(request.JSON)
def list_allocation_candidates(req: webob.Request) -> webob.Response:
    """GET /allocation_candidates: list the allocation candidates for a query."""
    context, version = request.context(req), request.version(req)
    context.can(policies.LIST)
    query = candidates_request.parse(request.query_items(req.environ), version)
    result = search.allocation_candidates(query, _options(context.config))
    if not result.candidates:
        _log_empty_result(req)
    shape = render.Shape.of(version)
    return reply.json_text_reply(req, lambda: render.render(result, shape))


def _log_empty_result(req: webob.Request) -> None:
    if LOG.isEnabledFor(logging.INFO):
        query = log_text.quoted(req.environ.get('QUERY_STRING', ''))
        LOG.info('No allocation candidates: %s microversion: %s', query, str(request.version(req)))


def _options(conf: cfg.ConfigOpts) -> search.Options:
    options = conf.placement
    return search.Options(
        max_candidates=options.max_allocation_candidates,
        strategy=options.allocation_candidates_generation_strategy,
        max_steps=options.max_candidate_search_steps,
        max_size=options.max_candidates_response_size,
        randomize=options.randomize_allocation_candidates,
    )
