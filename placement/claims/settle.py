"""Write the changes that `judge` accepted.

The functions replace allocations, increment generations, and delete consumers without allocations.
"""

from collections.abc import Iterable, Mapping
import dataclasses

import sqlalchemy as sa

from placement import exception
from placement.capacity import InventoryKey, InventoryUsage
from placement.claims import consumer, owner, statements
from placement.claims.model import Claim, Consumer, Demand, Ground, Reshape
from placement.objects import generation, inventory_rows, resource_class


def settle_claims(
    conn: sa.Connection,
    ground: Ground,
    inventories: Mapping[InventoryKey, InventoryUsage],
    increments: Mapping[int, int],
) -> None:
    """Replace the allocations of the consumers in a request.

    :param inventories: the inventories from which the claims allocate
    :param increments: additional generation increments, keyed by provider id, for example for
        changed inventories in a reshape
    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    _replace_allocations(conn, ground, inventories)
    _increment_providers(conn, ground, increments)
    _update_consumers(conn, ground)


def settle_reshape(conn: sa.Connection, ground: Ground, change: Reshape) -> None:
    """Write the inventory changes of a reshape, and then replace the allocations.

    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    added = {name for plan in change.plans.values() for name in plan.add}
    resource_class.touch(conn, {name: change.class_ids[name] for name in added})
    inventory_rows.apply_plans(conn, change.plans, change.class_ids)
    settle_claims(conn, ground, change.after, change.increments)


def _replace_allocations(
    conn: sa.Connection, ground: Ground, inventories: Mapping[InventoryKey, InventoryUsage]
) -> None:
    if ground.allocations:
        ids = [row.id for row in ground.allocations]
        deleted = conn.execute(statements.DELETE_ALLOCATIONS, {'ids': ids}).rowcount
        if deleted != len(ids):
            raise exception.ConcurrentChange('The set of allocations of a consumer')
    if ground.demands:
        insert_allocations(conn, ground.demands, inventories)


def insert_allocations(
    conn: sa.Connection,
    demands: Iterable[Demand],
    inventories: Mapping[InventoryKey, InventoryUsage],
) -> None:
    """Insert one allocation for each demand.

    :param inventories: the inventories of the demands
    """
    rows = [
        {
            'resource_provider_id': demand.provider_id,
            'consumer_id': demand.consumer_uuid,
            'resource_class_id': inventories[
                demand.provider_id, demand.resource_class
            ].resource_class_id,
            'used': demand.amount,
        }
        for demand in demands
    ]
    conn.execute(statements.INSERT_ALLOCATIONS, rows)


def _increment_providers(
    conn: sa.Connection, ground: Ground, increments: Mapping[int, int]
) -> None:
    """Increment the generations of the providers that the claims change.

    These are the providers of the new allocations, and the providers of the old allocations of each
    consumer that the request deletes. If a consumer drops one provider but keeps allocations from
    others, the generation of the dropped provider is not incremented.

    :param increments: additional increments, keyed by provider id
    """
    total = dict(increments)
    claimed = {ground.providers[uuid].id for claim in ground.claims for uuid in claim.allocations}
    for provider_id in claimed | ground.provider_ids_of_deleted_consumers:
        total[provider_id] = total.get(provider_id, 0) + 1
    seen = {
        provider.id: provider.generation
        for provider in ground.providers.values()
        if provider.id in total
    }
    generation.increment_providers(conn, seen, total)


def _update_consumers(conn: sa.Connection, ground: Ground) -> None:
    """Increment the generations of consumers that keep allocations, and delete other consumers."""
    kept: dict[int, Consumer] = {}
    without_allocations: list[int] = []
    for claim in ground.claims:
        stored = ground.consumers.get(claim.consumer_uuid)
        if stored is None:
            continue
        if claim.allocations:
            kept[stored.id] = _with_owners(stored, claim, ground)
        else:
            without_allocations.append(stored.id)
    current = {stored.id: stored for stored in ground.consumers.values()}
    generation.increment_consumers(
        conn,
        {stored.id: stored.generation for stored in kept.values()},
        statements.changed_owners(kept.values(), current),
    )
    consumer.delete(conn, without_allocations)


def _with_owners(stored: Consumer, claim: Claim, ground: Ground) -> Consumer:
    project_id, user_id, type_id = owner.ids_of(claim, ground.owners)
    return dataclasses.replace(
        stored,
        project_id=project_id,
        user_id=user_id,
        consumer_type_id=stored.consumer_type_id if type_id is None else type_id,
    )
