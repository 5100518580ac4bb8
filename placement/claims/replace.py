"""PUT and POST /allocations: replace all allocations of one or more consumers."""

from collections.abc import Sequence

import sqlalchemy as sa

from placement.claims import judge, new_consumer, owner_memory, refusal
from placement.claims.lock_and_read import (
    lock_consumers,
    prepare_ground,
    read_if_new,
    read_inventories,
)
from placement.claims.model import Claim
from placement.claims.settle import settle_claims
from placement.db import engine


def replace_allocations(claims: Sequence[Claim], min_attempts: int) -> None:
    """Write all claims in one transaction. If one claim is rejected, nothing is written.

    :param min_attempts: the minimum number of attempts in case of conflicts with concurrent
        transactions, even if the attempts exceed the deadline for retries
    :raises exception.ConsumerGenerationConflict: from microversion 1.28 on
    :raises exception.UnknownResourceProviders:
    :raises exception.UnknownResourceClasses:
    :raises exception.InvalidAllocation: an inventory does not allow a requested amount
    """
    is_new_consumer = new_consumer.applies(claims)

    def work(conn: sa.Connection) -> None:
        if is_new_consumer and new_consumer.write(conn, claims[0]):
            return
        # If `new_consumer` cannot write the claim, the consumer probably exists and must be locked.
        rows = None if is_new_consumer else read_if_new(conn, claims)
        consumers = {} if rows is not None else lock_consumers(conn, claims)
        judge.check_consumers(claims, consumers)
        ground = prepare_ground(conn, claims, consumers, rows=rows)
        judge.check_providers(ground)
        inventories = read_inventories(conn, ground)
        judge.check_amounts(ground.demands, inventories, ground.released)
        settle_claims(conn, ground, inventories, {})

    refusal.write_claims(work, max(1, min_attempts))
    owner_memory.remember(engine.get_placement_engine(), claims)
