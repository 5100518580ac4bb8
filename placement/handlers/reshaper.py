"""Handler of POST /reshaper."""

import webob

from placement import microversion, wsgi_wrapper
from placement.claims.model import Replacement
from placement.claims.reshape import reshape_inventories
from placement.handlers.allocation import claim_maker
from placement.handlers.inventory import parse_replacement
from placement.http import reply, request
from placement.policies import reshaper as policies
from placement.schemas import reshaper as schemas


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.RESHAPER)
@request.require_content(request.JSON)
def reshape(req: webob.Request) -> webob.Response:
    """POST /reshaper: replace inventories and the allocations against them in one transaction."""
    context, version = request.context(req), request.version(req)
    context.can(policies.RESHAPE)
    data = request.extract_json(req, schemas.POST.pick(version))
    to_claim = claim_maker(context, version)
    reshape_inventories(
        {uuid: Replacement(*parse_replacement(one)) for uuid, one in data['inventories'].items()},
        [to_claim(consumer, one) for consumer, one in data['allocations'].items()],
        context.config.placement.allocation_conflict_retry_count,
    )
    return reply.empty_reply(req)
