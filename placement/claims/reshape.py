"""POST /reshaper: replace inventories of providers and allocations of consumers together.

A reshape contains new inventories and claims. The claims can allocate from the new inventories.
"""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from placement.claims import judge, refusal, reshape_judge
from placement.claims.lock_and_read import lock_consumers, prepare_ground, read_all_inventories
from placement.claims.model import Claim, Replacement
from placement.claims.settle import settle_reshape
from placement.objects import provider_locks


def reshape_inventories(
    replacements: Mapping[str, Replacement], claims: Sequence[Claim], min_attempts: int
) -> None:
    """Replace inventories and allocations in one transaction (microversion 1.30).

    :param replacements: the new inventories of each provider, keyed by provider UUID
    :param min_attempts: the minimum number of attempts in case of conflicts with concurrent
        transactions, even if the attempts exceed the deadline for retries
    :raises exception.UnknownResourceProviders:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.ConsumerGenerationConflict:
    :raises exception.UnknownResourceClasses:
    :raises exception.InvalidAllocation: an inventory does not allow a requested amount
    :raises exception.InventoryInUse: allocations remain against an inventory that is removed
    """

    def work(conn: sa.Connection) -> None:
        consumers = lock_consumers(conn, claims)
        if judge.has_stale_consumer(claims, consumers):
            # Report an error of a reshaped provider in preference to a stale consumer generation.
            providers = provider_locks.lock(conn, list(replacements))
            reshape_judge.check_providers(replacements, providers)
        judge.check_consumers(claims, consumers)
        ground = prepare_ground(conn, claims, consumers, replacements)
        reshape_judge.check_providers(replacements, ground.providers)
        judge.check_providers(ground)
        current, class_ids = read_all_inventories(conn, replacements, ground)
        change = reshape_judge.plan_reshape(replacements, ground, current, class_ids)
        judge.check_amounts(ground.demands, change.current_and_new, ground.released)
        reshape_judge.check_removed_inventories(change.plans, ground, current)
        settle_reshape(conn, ground, change)

    refusal.write_claims(work, max(1, min_attempts))
