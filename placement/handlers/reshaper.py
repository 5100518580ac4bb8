"""Handler of POST /reshaper."""

from placement.claims.claim import Replacement
from placement.claims.write import reshape_inventories
from placement.handlers.allocation import to_claim
from placement.handlers.inventory import parse_replacement
from placement.http import reply
from placement.http.reply import Call, Reply


def reshape(call: Call) -> Reply:
    """POST /reshaper: replace inventories and the allocations against them in one transaction."""
    inventories, allocations = call.body['inventories'], call.body['allocations']
    conf = call.conf
    reshape_inventories(
        {uuid: Replacement(*parse_replacement(one)) for uuid, one in inventories.items()},
        [to_claim(conf, call.version, consumer, one) for consumer, one in allocations.items()],
        conf.placement.allocation_conflict_retry_count,
    )
    return reply.empty_reply(call)
