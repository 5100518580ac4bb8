"""Handler of POST /reshaper."""

from placement.claims.claim import Replacement
from placement.claims.write import reshape_inventories
from placement.handlers.allocation import claim_maker
from placement.handlers.inventory import parse_replacement
from placement.http import reply
from placement.http.call import Call
from placement.http.reply import Reply


def reshape(call: Call) -> Reply:
    """POST /reshaper: replace inventories and the allocations against them in one transaction."""
    inventories, allocations = call.body['inventories'], call.body['allocations']
    to_claim = claim_maker(call.conf, call.version)
    reshape_inventories(
        {uuid: Replacement(*parse_replacement(one)) for uuid, one in inventories.items()},
        [to_claim(consumer, one) for consumer, one in allocations.items()],
        call.conf.placement.allocation_conflict_retry_count,
    )
    return reply.empty_reply(call)
