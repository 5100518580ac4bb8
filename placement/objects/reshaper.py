"""POST /reshaper: inventories of several providers and allocations of several consumers, at once.

It is a claim whose providers change under it: what decides is the inventory that will be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from placement import db_api, errors, exception
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.objects import claim, inventory, resource_class, resource_provider
from placement.objects.claim import Claim, Ground
from placement.objects.inventory import Plan


@dataclass(frozen=True, slots=True)
class NewInventory:
    """All the inventory that a provider shall have, and the generation that the client saw."""

    generation: int
    records: Mapping[str, Inventory]


def reshape(
    inventories: Mapping[str, tuple[int, Mapping[str, Inventory]]],
    claims: Sequence[Claim],
    min_attempts: int,
) -> None:
    """Replace inventories and allocations in one transaction (microversion 1.30).

    :param inventories: the provider generation that the client saw, and all records by class,
        by provider uuid
    :raises exception.UnknownResourceProviders:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.ConsumerGenerationConflict:
    :raises exception.UnknownResourceClasses:
    :raises exception.InventoryInUse: a class that goes still has allocations afterwards
    :raises exception.InvalidAllocation:
    """
    wanted = {uuid: NewInventory(*new) for uuid, new in inventories.items()}

    def work(conn: sa.Connection) -> None:
        ground = _prepare(conn, wanted, claims)
        _require_inventories(wanted, ground.providers)
        claim.require_providers(claims, ground)
        classes = _class_ids(conn, wanted, claims)
        current = inventory.holdings(conn, {locked.id for locked in ground.providers.values()})
        plans = {
            ground.providers[uuid].id: inventory.plan(
                _of_provider(current, ground.providers[uuid].id), new.records
            )
            for uuid, new in wanted.items()
        }
        final = _final(wanted, ground, current, classes)
        # Until the allocations are replaced, providers have the old inventories and the new ones.
        # So what the claims ask for is judged first, by both, and then what is left behind.
        claim.judge(claims, ground, {**current, **final})
        _require_unused(plans, claims, ground, current)
        added = {name for plan in plans.values() for name in plan.add}
        resource_class.touch(conn, {name: classes[name] for name in added})
        known = {name: held.resource_class_id for (_, name), held in current.items()}
        inventory.apply(conn, plans, {**known, **classes})
        # Once for the old and the new together, once more for the new alone.
        raised = {
            ground.providers[uuid].id: 2 if new.records else 1 for uuid, new in wanted.items()
        }
        claim.settle(conn, claims, ground, final, raised)

    db_api.write(work, max(1, min_attempts))


def _prepare(
    conn: sa.Connection, wanted: Mapping[str, NewInventory], claims: Sequence[Claim]
) -> Ground:
    try:
        return claim.prepare(conn, claims, wanted)
    except exception.ConsumerGenerationConflict:
        # What is wrong with the inventories is told first.
        _require_inventories(wanted, resource_provider.lock(conn, list(wanted)))
        raise


def _require_inventories(
    wanted: Mapping[str, NewInventory],
    providers: Mapping[str, resource_provider.Locked],
) -> None:
    """Check provider by provider, in the order of the body: the first fault is the one told."""
    unknown = wanted.keys() - providers.keys()
    for uuid, new in wanted.items():
        if uuid in unknown:
            raise exception.UnknownResourceProviders(unknown, errors.RESOURCE_PROVIDER_NOT_FOUND)
        resource_provider.require_generation(providers[uuid], new.generation)


def _class_ids(
    conn: sa.Connection, wanted: Mapping[str, NewInventory], claims: Sequence[Claim]
) -> dict[str, int]:
    named = {name for new in wanted.values() for name in new.records}
    claimed = {
        name for claim in claims for amounts in claim.allocations.values() for name in amounts
    }
    return resource_class.ids(conn, named | claimed)


def _of_provider(
    current: Mapping[InventoryKey, InventoryUsage], provider_id: int
) -> dict[str, InventoryUsage]:
    return {name: held for (pid, name), held in current.items() if pid == provider_id}


def _final(
    wanted: Mapping[str, NewInventory],
    ground: Ground,
    current: Mapping[InventoryKey, InventoryUsage],
    classes: Mapping[str, int],
) -> dict[InventoryKey, InventoryUsage]:
    """The inventories as they will be, with their usage as it is."""
    reshaped = {ground.providers[uuid].id for uuid in wanted}
    final = {spot: held for spot, held in current.items() if spot[0] not in reshaped}
    for uuid, new in wanted.items():
        provider_id = ground.providers[uuid].id
        for name, record in new.records.items():
            before = current.get((provider_id, name))
            final[provider_id, name] = InventoryUsage(
                classes[name], record, before.used if before else 0
            )
    return final


def _require_unused(
    plans: Mapping[int, Plan],
    claims: Sequence[Claim],
    ground: Ground,
    current: Mapping[InventoryKey, InventoryUsage],
) -> None:
    """No class may go that somebody holds when all is done."""
    left = {spot: held.used for spot, held in current.items()}
    for spot, amount in claim.released(ground).items():
        left[spot] = left.get(spot, 0) - amount
    for demand in claim.demands(claims, ground):
        spot = demand.provider_id, demand.resource_class
        left[spot] = left.get(spot, 0) + demand.amount
    uuids = {locked.id: locked.uuid for locked in ground.providers.values()}
    for provider_id, plan in plans.items():
        in_use = [name for name in plan.drop if left.get((provider_id, name), 0) > 0]
        if in_use:
            raise exception.InventoryInUse(in_use, uuids[provider_id])
