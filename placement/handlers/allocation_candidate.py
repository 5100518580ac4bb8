"""GET /allocation_candidates."""

import logging

from oslo_config import cfg

from placement import microversion
from placement.candidates import render, search
from placement.candidates import request as candidates_request
from placement.handlers.operation import Rule, operation
from placement.http import quoted, reply
from placement.http.reply import Call, Reply

LOG = logging.getLogger(__name__)

# A header of responses in which candidates may be missing because of a limit of the service.
_INCOMPLETE = ('OpenStack-Placement-Search', 'incomplete')


@operation(
    'GET /allocation_candidates',
    since=microversion.ALLOCATION_CANDIDATES,
    rule=Rule('placement:allocation_candidates:list', 'List allocation candidates.'),
    query={},
)
def list_allocation_candidates(call: Call) -> Reply:
    """List the allocation candidates for a query."""
    query = candidates_request.parse(call.items, call.version)
    result = search.allocation_candidates(query, _options(call.conf))
    if not result.candidates:
        _log_empty_result(call)
    response = reply.json_reply(call, render.render(result, call.version, reply.dumps))
    if result.is_cut:
        response.headers.append(_INCOMPLETE)
    return response


def _log_empty_result(call: Call) -> None:
    if LOG.isEnabledFor(logging.INFO):
        query = quoted(call.environ.get('QUERY_STRING', ''))
        LOG.info('No allocation candidates: %s microversion: %s', query, str(call.version))


def _options(conf: cfg.ConfigOpts) -> search.Options:
    options = conf.placement
    return search.Options(
        max_candidates=options.max_allocation_candidates,
        strategy=options.allocation_candidates_generation_strategy,
        max_steps=options.max_candidate_search_steps,
        max_size=options.max_candidates_response_size,
        randomize=options.randomize_allocation_candidates,
    )
