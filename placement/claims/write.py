"""Write claims: the functions that replace and delete allocations, and that execute a reshape.

Each public function executes one transaction. The transaction locks and reads rows
(`lock_and_read`), accepts or rejects the claims (`judge`), and writes the accepted ones: it
replaces the allocations, increments the generations, and deletes the consumers without allocations.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import logging
from typing import Any, TypeVar

from oslo_utils import timeutils
import sqlalchemy as sa

from placement import capacity, exception, telemetry, trail
from placement.capacity import InventoryKey, InventoryUsage
from placement.claims import consumer_rows, judge, statements
from placement.claims.claim import Claim, Consumer, Demand, LockedClaims, Replacement, Reshape
from placement.claims.lock_and_read import (
    lock_claims,
    lock_consumers,
    read_all_inventories,
    read_if_new,
    read_inventories,
)
from placement.db import engine
from placement.objects import generation, inventory_rows, provider_rows, resource_class

# Operators search for the lines of this logger, so its name does not depend on the module.
LOG = logging.getLogger('placement.claims')

# `_insert_if_all_fit` uses one statement for each number of classes, up to this number.
MOST_INSERTED_DIRECTLY = 16

T = TypeVar('T')
Inventories = Mapping[InventoryKey, InventoryUsage]


# Transactions ---------------------------------------------------------------------


def replace_allocations(claims: Sequence[Claim], min_attempts: int) -> None:
    """Write all claims in one transaction. If one claim is rejected, nothing is written.

    :param min_attempts: the minimum number of attempts in case of conflicts with concurrent
        transactions, even if the attempts exceed the deadline for retries
    :raises exception.ConsumerGenerationConflict: from microversion 1.28 on
    :raises exception.UnknownResourceProviders:
    :raises exception.UnknownResourceClasses:
    :raises exception.InvalidAllocation: an inventory does not allow a requested amount
    """
    insert_directly = (
        len(claims) == 1 and claims[0].requires_new_consumer and len(claims[0].allocations) == 1
    )

    def work(conn: sa.Connection) -> LockedClaims | None:
        if insert_directly and _insert_directly(conn, claims[0]):
            return None
        # If a direct insert was not possible, the consumer probably exists and must be locked.
        rows = None if insert_directly else read_if_new(conn, claims)
        consumers = {} if rows is not None else lock_consumers(conn, claims)
        judge.check_consumers(claims, consumers)
        locked = lock_claims(conn, claims, consumers, rows=rows)
        judge.check_claimed_providers(locked)
        inventories = read_inventories(conn, locked)
        judge.check_amounts(locked.demands, inventories, locked.released)
        _write_claims(conn, locked, inventories, {})
        return locked

    locked = _execute(work, min_attempts, claims)
    trail.log(_changes_of_claims, claims, locked)
    consumer_rows.remember_owners(engine.get_placement_engine(), claims)


def reshape_inventories(
    replacements: Mapping[str, Replacement], claims: Sequence[Claim], min_attempts: int
) -> None:
    """Replace inventories and allocations in one transaction (microversion 1.30).

    The claims can allocate from the new inventories.

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

    def work(conn: sa.Connection) -> tuple[LockedClaims, Inventories]:
        consumers = lock_consumers(conn, claims)
        if judge.has_stale_consumer(claims, consumers):
            # Report an error of a reshaped provider in preference to a stale consumer generation.
            providers = provider_rows.lock(conn, list(replacements))
            judge.check_reshaped_providers(replacements, providers)
        judge.check_consumers(claims, consumers)
        locked = lock_claims(conn, claims, consumers, replacements)
        judge.check_reshaped_providers(replacements, locked.providers)
        judge.check_claimed_providers(locked)
        current, class_ids = read_all_inventories(conn, replacements, locked)
        change = judge.plan_reshape(replacements, locked, current, class_ids)
        judge.check_amounts(locked.demands, change.current_and_new, locked.released)
        judge.check_removed_inventories(change.plans, locked, current)
        _write_reshape(conn, locked, change)
        return locked, current

    locked, current = _execute(work, min_attempts, claims)
    trail.log(_changes_of_reshape, replacements, locked, current)


def delete_allocations(consumer_uuid: str) -> None:
    """Delete a consumer and all its allocations.

    The request contains no generation to check, and no provider generation is incremented.

    :raises exception.AllocationsNotFound: the consumer has no allocations
    """

    def work(conn: sa.Connection) -> None:
        consumers = consumer_rows.lock(conn, [consumer_uuid])
        uuids = {consumer_uuid, *(stored.uuid for stored in consumers.values())}
        parameters = {'uuids': sorted(uuids)}
        deleted = conn.execute(statements.DELETE_ALLOCATIONS_OF_CONSUMERS, parameters).rowcount
        if not consumers and consumer_rows.lock(conn, [consumer_uuid]):
            # A concurrent transaction created the consumer after the first attempt to lock it, and
            # may have inserted allocations after the DELETE.
            raise exception.ConcurrentChange(f'Consumer {consumer_uuid}')
        if not deleted:
            raise exception.AllocationsNotFound(consumer_uuid)
        consumer_rows.delete(conn, [stored.id for stored in consumers.values()])

    engine.write(work)
    trail.log(trail.allocations_removed, consumer_uuid, {})


def _execute(work: engine.Work[T], min_attempts: int, claims: Iterable[Claim]) -> T:
    """Execute a transaction; if the claims are refused, count and log the refusal.

    An unavailable database is not a refusal.
    """
    try:
        return engine.write(work, max(1, min_attempts))
    except exception.ServiceUnavailable:
        raise
    except exception.PlacementException as exc:
        telemetry.refused(judge.refusal_reason(exc))
        consumers = trail.refused_consumers(exc, (claim.consumer_uuid for claim in claims))
        LOG.warning('claim of %s refused: %s', consumers, trail.refusal(exc))
        raise


# Changes in the log ---------------------------------------------------------------


def _changes_of_claims(claims: Iterable[Claim], locked: LockedClaims | None) -> Iterator[str]:
    """Describe the changed allocations of each consumer.

    :param locked: None if the claims are of new consumers, whose allocations no statement read
    """
    amounts: dict[str, dict[str, dict[str, int]]] = {}
    for row in locked.allocations if locked else ():
        of_provider = amounts.setdefault(row.consumer_id, {}).setdefault(row.provider_uuid, {})
        of_provider[row.resource_class] = row.used
    for claim in claims:
        stored = locked.consumers.get(claim.consumer_uuid) if locked else None
        uuid = stored.uuid if stored else claim.consumer_uuid
        before, after = amounts.get(uuid, {}), claim.allocations
        if locked and after:
            after = {locked.providers[requested].uuid: after[requested] for requested in after}
        if not after:
            yield from trail.allocations_removed(uuid, before) if before else ()
        elif before != after or (
            stored and locked and _with_owners(stored, claim, locked) != stored
        ):
            owners = claim.consumer_type, claim.project_id, claim.user_id
            yield from trail.allocations(uuid, *owners, before, after)


def _changes_of_reshape(
    replacements: Mapping[str, Replacement], locked: LockedClaims, current: Inventories
) -> Iterator[str]:
    """Describe the changed inventories, and the changed allocations of each consumer.

    :param current: the inventories before the reshape
    """
    for requested, replacement in replacements.items():
        provider = locked.providers[requested]
        before = {name: usage for (id_, name), usage in current.items() if id_ == provider.id}
        yield from trail.inventories(provider.uuid, None, before, replacement.inventories)
    yield from _changes_of_claims(locked.claims, locked)


# New consumers --------------------------------------------------------------------


def _insert_directly(conn: sa.Connection, claim: Claim) -> bool:
    """Write the claim of a new consumer that allocates from one provider.

    Most claims of a cloud start an instance, and are of this kind. This function needs fewer round
    trips than the functions that write every kind of claim:

    * It does not read whether the consumer exists. The INSERT of the consumer detects this.
    * The same INSERT looks up the ids of the project, user and consumer type.
    * It does not lock the provider before it increments the generation. The UPDATE is the lock.
      With only one provider, the transaction does not need to lock providers in the order of their
      UUIDs.
    * It does not read the inventories of an accepted claim. The INSERT of the allocations has their
      limits as its condition. If it inserts nothing, `judge` accepts or rejects the claim.

    :returns: False if the consumer exists, if it has allocations without a consumer row, or if one
        of its owners does not exist. The caller must then lock and read the consumer
    :raises exception.UnknownResourceProviders:
    :raises exception.UnknownResourceClasses: lists all requested classes that do not exist
    :raises exception.InvalidAllocation: an inventory does not allow a requested amount
    """
    consumer_rows.insert_unknown_owners(conn, claim)
    consumer = {
        'consumer_uuid': claim.consumer_uuid,
        f'name{statements.PROJECT}': claim.project_id,
        f'name{statements.USER}': claim.user_id,
        f'name{statements.TYPE}': claim.consumer_type,
    }
    insert = statements.INSERT_NEW_CONSUMER[conn.dialect.name]
    if conn.execute(insert, consumer).rowcount != 1:
        return False
    ((provider_uuid, amounts),) = claim.allocations.items()
    if not generation.lock_and_increment_provider(conn, provider_uuid):
        raise exception.UnknownResourceProviders({provider_uuid})
    if _insert_if_all_fit(conn, provider_uuid, amounts, consumer):
        return True
    requested = {'uuid': provider_uuid, 'names': list(amounts), **consumer}
    rows = conn.execute(statements.INVENTORIES_FOR_NEW_CONSUMER, requested).all()
    if rows and rows[0][-1]:
        conn.rollback()
        consumer_rows.forget_owners(conn.engine, claim)
        return False
    inventories = inventory_rows.by_key(rows)
    without_inventory = amounts.keys() - {name for _, name in inventories}
    if without_inventory:
        # An unknown class is reported in preference to a missing inventory.
        resource_class.ids(conn, without_inventory)
    # Without rows, the id of the provider is unknown, and `check_amounts` rejects the first amount.
    provider_id = rows[0][0] if rows else 0
    demands = [
        Demand(claim.consumer_uuid, provider_id, provider_uuid, name, amount)
        for name, amount in amounts.items()
    ]
    judge.check_amounts(demands, inventories, {})
    _insert_allocations(conn, demands, inventories)
    return True


def _insert_if_all_fit(
    conn: sa.Connection,
    provider_uuid: str,
    amounts: Mapping[str, int],
    consumer: Mapping[str, Any],
) -> bool:
    """Insert the allocations of a new consumer, if the inventories allow all of them.

    :param consumer: the parameters of the INSERT of the consumer
    :returns: whether all allocations were inserted; if not, none was inserted
    """
    if len(amounts) > MOST_INSERTED_DIRECTLY or max(amounts.values()) > capacity.MAX_INT:
        return False
    parameters = {**consumer, 'uuid': provider_uuid, 'now': timeutils.utcnow()}
    for number, (class_name, amount) in enumerate(amounts.items()):
        parameters[f'class_{number}'] = class_name
        parameters[f'amount_{number}'] = amount
    statement = statements.insert_if_all_fit(len(amounts))
    return bool(conn.execute(statement, parameters).rowcount == len(amounts))


# Accepted claims ------------------------------------------------------------------


def _write_claims(
    conn: sa.Connection,
    locked: LockedClaims,
    inventories: Mapping[InventoryKey, InventoryUsage],
    increments: Mapping[int, int],
) -> None:
    """Replace the allocations of the consumers in a request.

    :param inventories: the inventories from which the claims allocate
    :param increments: additional generation increments, keyed by provider id, for example for
        changed inventories in a reshape
    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    _replace_allocations(conn, locked, inventories)
    _increment_providers(conn, locked, increments)
    _update_consumers(conn, locked)


def _write_reshape(conn: sa.Connection, locked: LockedClaims, change: Reshape) -> None:
    """Write the inventory changes of a reshape, and then replace the allocations.

    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    added = {name for plan in change.plans.values() for name in plan.add}
    resource_class.touch(conn, {name: change.class_ids[name] for name in added})
    inventory_rows.apply_plans(conn, change.plans, change.class_ids)
    _write_claims(conn, locked, change.after, change.increments)


def _replace_allocations(
    conn: sa.Connection, locked: LockedClaims, inventories: Mapping[InventoryKey, InventoryUsage]
) -> None:
    if locked.allocations:
        ids = [row.id for row in locked.allocations]
        deleted = conn.execute(statements.DELETE_ALLOCATIONS, {'ids': ids}).rowcount
        if deleted != len(ids):
            raise exception.ConcurrentChange('The set of allocations of a consumer')
    if locked.demands:
        _insert_allocations(conn, locked.demands, inventories)


def _insert_allocations(
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
    conn: sa.Connection, locked: LockedClaims, increments: Mapping[int, int]
) -> None:
    """Increment the generations of the providers that the claims change.

    These are the providers of the new allocations, and the providers of the old allocations of each
    consumer that the request deletes. If a consumer drops one provider but keeps allocations from
    others, the generation of the dropped provider is not incremented.

    :param increments: additional increments, keyed by provider id
    """
    total = dict(increments)
    claimed = {locked.providers[uuid].id for claim in locked.claims for uuid in claim.allocations}
    for provider_id in claimed | locked.provider_ids_of_deleted_consumers:
        total[provider_id] = total.get(provider_id, 0) + 1
    seen = {
        provider.id: provider.generation
        for provider in locked.providers.values()
        if provider.id in total
    }
    try:
        generation.increment_providers(conn, seen, total)
    except exception.ConcurrentChange as exc:
        uuids = {provider.uuid for provider in locked.providers.values() if provider.id in total}
        raise exception.ConcurrentChange(exc.what, uuids) from exc


def _update_consumers(conn: sa.Connection, locked: LockedClaims) -> None:
    """Increment the generations of consumers that keep allocations, and delete other consumers."""
    kept: dict[int, Consumer] = {}
    without_allocations: list[int] = []
    for claim in locked.claims:
        stored = locked.consumers.get(claim.consumer_uuid)
        if stored is None:
            continue
        if claim.allocations:
            kept[stored.id] = _with_owners(stored, claim, locked)
        else:
            without_allocations.append(stored.id)
    current = {stored.id: stored for stored in locked.consumers.values()}
    generation.increment_consumers(
        conn,
        {stored.id: stored.generation for stored in kept.values()},
        statements.changed_owners(kept.values(), current),
    )
    consumer_rows.delete(conn, without_allocations)


def _with_owners(stored: Consumer, claim: Claim, locked: LockedClaims) -> Consumer:
    project_id, user_id, type_id = consumer_rows.owner_ids(claim, locked.owners)
    return dataclasses.replace(
        stored,
        project_id=project_id,
        user_id=user_id,
        consumer_type_id=stored.consumer_type_id if type_id is None else type_id,
    )
