"""POST /reshaper."""

from placement import microversion
from placement.claims.claim import Replacement
from placement.claims.write import reshape_inventories
from placement.handlers import allocation, inventory
from placement.handlers.operation import Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import Variants, Version
from placement.schemas import UUID_KEY, Schema, closed, keyed


def _schema(version: Version) -> Schema:
    return closed(
        {
            'inventories': keyed(UUID_KEY, inventory.REPLACEMENT, minProperties=1),
            # The schema of POST /allocations, but here the object may be empty.
            'allocations': {**allocation.CLAIMS.pick(version), 'minProperties': 0},
        }
    )


@operation(
    'POST /reshaper',
    since=microversion.RESHAPER,
    rule=Rule(
        'placement:reshaper:reshape',
        'Move inventories and their allocations between resource providers.',
        check='rule:service_api',
    ),
    body=Variants(
        {
            since: _schema(since)
            for since in (
                microversion.RESHAPER,
                microversion.MAPPINGS,
                microversion.CONSUMER_TYPES,
            )
        }
    ),
)
def reshape(call: Call) -> Reply:
    """Replace inventories and the allocations against them in one transaction."""
    inventories, allocations = call.body['inventories'], call.body['allocations']
    conf = call.conf
    reshape_inventories(
        {uuid: Replacement(*inventory.parse_replacement(one)) for uuid, one in inventories.items()},
        [
            allocation.to_claim(conf, call.version, consumer, one)
            for consumer, one in allocations.items()
        ],
        conf.placement.allocation_conflict_retry_count,
    )
    return reply.empty_reply(call)
