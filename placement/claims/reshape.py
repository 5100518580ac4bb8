"""POST /reshaper: replace inventories of providers and allocations of consumers together.

A reshape is a set of claims against the inventories that exist after it.
"""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from placement.claims import judge
from placement.claims.lock_and_read import (
    lock_consumers,
    prepare_ground,
    read_all_inventories,
    read_class_ids,
)
from placement.claims.model import Claim, Replacement
from placement.claims.settle import settle_reshape
from placement.db import engine
from placement.objects import provider_locks


def reshape_inventories(
    replacements: Mapping[str, Replacement], claims: Sequence[Claim], min_attempts: int
) -> None:
    """Replace inventories and allocations in one transaction (microversion 1.30).

    :param replacements: the new inventories by provider UUID
    :param min_attempts: attempts before the deadline for retries can end the request
    :raises exception.UnknownResourceProviders:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.ConsumerGenerationConflict:
    :raises exception.UnknownResourceClasses:
    :raises exception.InvalidAllocation: an amount cannot be granted
    :raises exception.InventoryInUse: allocations remain against an inventory that is removed
    """

    def work(conn: sa.Connection) -> None:
        consumers = lock_consumers(conn, claims)
        if judge.has_stale_consumer(claims, consumers):
            # Errors of the inventories take precedence.
            providers = provider_locks.lock(conn, list(replacements))
            judge.check_reshaped_providers(replacements, providers)
        judge.check_consumers(claims, consumers)
        ground = prepare_ground(conn, claims, consumers, replacements)
        judge.check_reshaped_providers(replacements, ground.providers)
        judge.check_providers(ground)
        class_ids = read_class_ids(conn, replacements, claims)
        current = read_all_inventories(conn, ground)
        change = judge.plan_reshape(replacements, ground, current, class_ids)
        judge.check_amounts(ground.demands, change.current_and_new, ground.released)
        judge.check_removed_inventories(change.plans, ground, current)
        settle_reshape(conn, ground, change)

    engine.write(work, max(1, min_attempts))
