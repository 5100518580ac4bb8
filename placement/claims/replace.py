"""PUT and POST /allocations: replace all allocations of one consumer or of several."""

from collections.abc import Sequence

import sqlalchemy as sa

from placement.claims import judge
from placement.claims.lock_and_read import lock_consumers, prepare_ground, read_inventories
from placement.claims.model import Claim
from placement.claims.settle import settle_claims
from placement.db import engine


def replace_allocations(claims: Sequence[Claim], min_attempts: int) -> None:
    """Replace all allocations of each consumer; all claims succeed, or none.

    :param min_attempts: attempts before the deadline for retries can end the request
    :raises exception.ConsumerGenerationConflict: from microversion 1.28 on
    :raises exception.UnknownResourceProviders:
    :raises exception.UnknownResourceClasses:
    :raises exception.InvalidAllocation: an amount cannot be granted
    """

    def work(conn: sa.Connection) -> None:
        consumers = lock_consumers(conn, claims)
        judge.check_consumers(claims, consumers)
        ground = prepare_ground(conn, claims, consumers)
        judge.check_providers(ground)
        inventories = read_inventories(conn, ground)
        judge.check_amounts(ground.demands, inventories, ground.released)
        settle_claims(conn, ground, inventories, {})

    engine.write(work, max(1, min_attempts))
