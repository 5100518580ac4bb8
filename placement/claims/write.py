"""Write claims: the functions that replace and delete allocations, and that execute a reshape.

Each public function executes one transaction. The transaction locks and reads rows (`rows`),
accepts or rejects the claims (`judge`), and writes the accepted ones: it replaces the allocations,
increments the generations, and deletes the consumers without allocations.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import logging
from typing import Any, TypeVar

from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement import exception, telemetry, trail
from placement.capacity import InventoryKey
from placement.claims import judge, rows, statements
from placement.claims.claim import (
    Allocation,
    Claim,
    Consumer,
    Demand,
    Facts,
    LockedClaims,
    Provider,
    Replacement,
    Reshape,
)
from placement.db import engine, failures
from placement.objects import generation, inventory, provider_rows, resource_class

# Operators search for the lines of this logger, so its name does not depend on the module.
LOG = logging.getLogger('placement.claims')

T = TypeVar('T')
Replacements = Mapping[str, Replacement]


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

    def work(conn: sa.Connection) -> LockedClaims:
        locked = _lock_and_read(conn, claims, {})
        judge.check_amounts(locked.demands, locked.inventories, locked.released)
        _write_claims(conn, locked)
        return locked

    locked = _execute(work, min_attempts, claims)
    trail.log(_changes_of_claims, locked)


def reshape_inventories(
    replacements: Replacements, claims: Sequence[Claim], min_attempts: int
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

    def work(conn: sa.Connection) -> LockedClaims:
        locked = _lock_and_read(conn, claims, replacements)
        change = judge.plan_reshape(replacements, locked)
        judge.check_amounts(locked.demands, change.current_and_new, locked.released)
        judge.check_removed_inventories(change.plans, locked)
        _write_reshape(conn, locked, change)
        return locked

    locked = _execute(work, min_attempts, claims)
    trail.log(_changes_of_reshape, replacements, locked)


def delete_allocations(consumer_uuid: str) -> None:
    """Delete a consumer and all its allocations.

    The request contains no generation to check, and no provider generation is incremented.

    :raises exception.AllocationsNotFound: the consumer has no allocations
    """

    def work(conn: sa.Connection) -> None:
        consumers = rows.lock_consumers(conn, [consumer_uuid])
        uuids = {consumer_uuid, *(stored.uuid for stored in consumers.values())}
        parameters = {'uuids': sorted(uuids)}
        deleted = conn.execute(statements.DELETE_ALLOCATIONS_OF_CONSUMERS, parameters).rowcount
        if not consumers and rows.lock_consumers(conn, [consumer_uuid]):
            # A concurrent transaction created the consumer after the first attempt to lock it, and
            # may have inserted allocations after the DELETE.
            raise exception.ConcurrentChange(f'Consumer {consumer_uuid}')
        if not deleted:
            raise exception.AllocationsNotFound(consumer_uuid)
        rows.delete_consumers(conn, [stored.id for stored in consumers.values()])

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
        telemetry.REFUSALS.add(1, judge.refusal_reason(exc))
        consumers = trail.refused_consumers(exc, (claim.consumer_uuid for claim in claims))
        LOG.warning('claim of %s refused: %s', consumers, trail.refusal(exc))
        raise


# Locks and reads ------------------------------------------------------------------


def _lock_and_read(
    conn: sa.Connection, claims: Sequence[Claim], replacements: Replacements
) -> LockedClaims:
    """Insert or lock the rows that the request changes, and then read the stored data.

    The generations of the providers are incremented. If the request is refused, the transaction is
    rolled back.

    :param replacements: the new inventories of a reshape
    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    claiming = [claim for claim in claims if claim.allocations]
    claimed = {uuid for claim in claiming for uuid in claim.allocations}
    consumers = _lock_or_insert_consumers(conn, claims, replacements)
    removed = _read_removed_allocations(conn, claims, consumers)
    locked = _lock_providers(conn, claimed, removed, replacements)
    if claimed or locked or removed:
        rows.check_still_absent(conn, claims, consumers)
    facts = Facts({}, {}, (), {})
    if claimed or replacements:
        kept = _spellings(claiming, consumers)
        facts = rows.read_facts(conn, claimed.union(locked), kept)
    new_owners = {claim.consumer_uuid: _new_owners(claim, consumers, facts) for claim in claiming}
    # Without a SELECT that locks providers, there is at most one provider.
    providers = locked or dict(zip(claimed, facts.providers.values(), strict=True))
    allocations = (*removed, *facts.allocations)
    return LockedClaims(
        claims=claims,
        consumers=consumers,
        new_owners=new_owners,
        allocations=allocations,
        providers=providers,
        inventories=facts.inventories,
        class_ids=_class_ids(conn, claiming, replacements, facts),
        demands=_demands(claiming, consumers, providers),
        released=_released(allocations),
    )


def _lock_or_insert_consumers(
    conn: sa.Connection, claims: Sequence[Claim], replacements: Replacements
) -> dict[str, Consumer]:
    """Lock the consumers that exist, insert the others, and return the locked ones.

    A row that does not exist cannot be locked. So if the client expects that no consumer exists,
    the INSERT is the first statement. If a consumer exists, the unique key rejects the INSERT.

    :returns: the consumers that existed before the request, keyed by requested UUID
    """
    consumers: dict[str, Consumer] = {}
    if not all(claim.requires_new_consumer for claim in claims):
        consumers = _lock_consumers(conn, claims, replacements)
    new = [claim for claim in claims if claim.allocations and claim.consumer_uuid not in consumers]
    try:
        rows.insert_consumers(conn, new)
    except db_exc.DBError as exc:
        if failures.is_key_violation(exc):
            conn.rollback()
            rows.require_different(conn, claims)
            _lock_consumers(conn, claims, replacements)
        raise
    return consumers


def _lock_consumers(
    conn: sa.Connection, claims: Sequence[Claim], replacements: Replacements
) -> dict[str, Consumer]:
    """Lock the existing consumers of the claims, and check their generations.

    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer
    """
    uuids = [claim.consumer_uuid for claim in claims]
    new = [claim.consumer_uuid for claim in claims if claim.allocations]
    consumers = rows.lock_consumers(conn, uuids, new)
    if replacements and judge.has_stale_consumer(claims, consumers):
        # Report an error of a reshaped provider in preference to a stale consumer generation.
        locked = provider_rows.lock(conn, list(replacements))
        judge.check_reshaped_providers(replacements, locked)
    judge.check_consumers(claims, consumers)
    return consumers


def _read_removed_allocations(
    conn: sa.Connection, claims: Iterable[Claim], consumers: Mapping[str, Consumer]
) -> Sequence[Allocation]:
    """Return the stored allocations of the consumers whose allocations the request removes.

    A claim without allocations removes all allocations of its consumer, and deletes the consumer.
    """
    uuids = _spellings([claim for claim in claims if not claim.allocations], consumers)
    return rows.read_facts(conn, (), uuids).allocations if uuids else ()


def _spellings(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> set[str]:
    """Return the UUIDs of the consumers of claims, as the request and the database spell them."""
    requested = {claim.consumer_uuid for claim in claims}
    return requested | {consumers[uuid].uuid for uuid in requested & consumers.keys()}


def _lock_providers(
    conn: sa.Connection,
    claimed: set[str],
    removed: Iterable[Allocation],
    replacements: Replacements,
) -> dict[str, Provider]:
    """Lock the providers of a request, and increment their generations.

    Several providers are locked in the order of their UUIDs, by a SELECT. For a single provider of
    claims, the UPDATE of the generation is the lock.

    :param claimed: the UUIDs of the providers in the claims
    :returns: the providers, keyed by requested or stored UUID; none if the UPDATE was the lock
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same provider
    """
    stored = {one.provider_uuid for one in removed if one.provider_uuid is not None}
    if len(claimed) == 1 and not stored and not replacements:
        (uuid,) = claimed
        found = generation.lock_and_increment_provider(conn, uuid)
        judge.check_claimed_providers(claimed, claimed if found else ())
        return {}
    locked = provider_rows.lock(conn, claimed.union(replacements), stored)
    judge.check_reshaped_providers(replacements, locked)
    judge.check_claimed_providers(claimed, locked)
    rows.increment_providers(conn, locked, claimed | stored, replacements)
    return {uuid: Provider(one.id, one.uuid) for uuid, one in locked.items()}


def _new_owners(claim: Claim, consumers: Mapping[str, Consumer], facts: Facts) -> dict[int, str]:
    """Return the owners in a claim that its consumer does not have, keyed by kind.

    A new consumer lacks only the owners that do not exist.
    """
    stored = consumers.get(claim.consumer_uuid)
    current = facts.owners[stored.uuid if stored else claim.consumer_uuid]
    return {
        kind: name
        for kind, name in enumerate(claim.owners)
        if name not in (None, current[kind]) and (stored or current[kind] is None)
    }


def _class_ids(
    conn: sa.Connection, claims: Iterable[Claim], replacements: Replacements, facts: Facts
) -> dict[str, int]:
    """Return the ids of the classes of a request and of the stored inventories.

    :raises exception.UnknownResourceClasses: lists all requested classes that do not exist
    """
    requested = {name for new in replacements.values() for name in new.inventories}
    for claim in claims:
        requested.update(*claim.allocations.values())
    stored = {name: one.resource_class_id for (_, name), one in facts.inventories.items()}
    # An unknown class is reported in preference to a missing inventory.
    return stored | resource_class.ids(conn, requested - stored.keys())


def _demands(
    claims: Iterable[Claim], consumers: Mapping[str, Consumer], providers: Mapping[str, Provider]
) -> list[Demand]:
    """Return one demand for each requested allocation, in the order of the request body."""
    demands = []
    for claim in claims:
        stored = consumers.get(claim.consumer_uuid)
        consumer_uuid = stored.uuid if stored else claim.consumer_uuid
        for uuid, amounts in claim.allocations.items():
            for name, amount in amounts.items():
                demands.append(Demand(consumer_uuid, providers[uuid].id, uuid, name, amount))
    return demands


def _released(allocations: Iterable[Allocation]) -> dict[InventoryKey, int]:
    """Return the sum of the allocations for each pair of provider and resource class.

    Allocations whose provider or class does not exist do not count towards any usage.
    """
    released: dict[InventoryKey, int] = {}
    for one in allocations:
        if one.provider_id is None or one.resource_class is None:
            continue
        key = one.provider_id, one.resource_class
        released[key] = released.get(key, 0) + one.used
    return released


# Changes in the log ---------------------------------------------------------------


def _changes_of_claims(locked: LockedClaims) -> Iterator[str]:
    """Describe the changed allocations of each consumer."""
    amounts: dict[str, dict[Any, dict[Any, int]]] = {}
    for row in locked.allocations:
        of_provider = amounts.setdefault(row.consumer_uuid, {}).setdefault(row.provider_uuid, {})
        of_provider[row.resource_class] = row.used
    for claim in locked.claims:
        stored = locked.consumers.get(claim.consumer_uuid)
        uuid = stored.uuid if stored else claim.consumer_uuid
        before = amounts.get(uuid, {})
        after = {locked.providers[name].uuid: one for name, one in claim.allocations.items()}
        if not after:
            yield from trail.allocations_removed(uuid, before) if before else ()
        elif before != after or (stored and locked.new_owners[claim.consumer_uuid]):
            owners = claim.consumer_type, claim.project_id, claim.user_id
            yield from trail.allocations(uuid, *owners, before, after)


def _changes_of_reshape(replacements: Replacements, locked: LockedClaims) -> Iterator[str]:
    """Describe the changed inventories, and the changed allocations of each consumer."""
    for requested, replacement in replacements.items():
        provider = locked.providers[requested]
        before = {
            name: usage for (id_, name), usage in locked.inventories.items() if id_ == provider.id
        }
        yield from trail.inventories(provider.uuid, None, before, replacement.inventories)
    yield from _changes_of_claims(locked)


# Accepted claims ------------------------------------------------------------------


def _write_reshape(conn: sa.Connection, locked: LockedClaims, change: Reshape) -> None:
    """Write the inventory changes of a reshape, and then replace the allocations.

    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    added = {name for plan in change.plans.values() for name in plan.add}
    resource_class.touch(conn, {name: locked.class_ids[name] for name in added})
    inventory.apply_plans(conn, change.plans, locked.class_ids)
    _write_claims(conn, locked)


def _write_claims(conn: sa.Connection, locked: LockedClaims) -> None:
    """Replace the allocations of the consumers in a request.

    :raises exception.ConcurrentChange: a concurrent transaction changed one of the rows
    """
    if locked.allocations:
        ids = [one.id for one in locked.allocations]
        deleted = conn.execute(statements.DELETE_ALLOCATIONS, {'ids': ids}).rowcount
        if deleted != len(ids):
            raise exception.ConcurrentChange('The set of allocations of a consumer')
    if locked.demands:
        allocations = [
            {
                'resource_provider_id': demand.provider_id,
                'consumer_id': demand.consumer_uuid,
                'resource_class_id': locked.class_ids[demand.resource_class],
                'used': demand.amount,
            }
            for demand in locked.demands
        ]
        conn.execute(statements.INSERT_ALLOCATIONS, allocations)
    _insert_owners(conn, locked)
    _update_consumers(conn, locked)


def _insert_owners(conn: sa.Connection, locked: LockedClaims) -> None:
    """Insert the owners that do not exist, and set those of new consumers.

    Most requests name only owners that exist.

    :raises exception.ConcurrentChange: the unique key of an owner considers more names to be equal
        than its column does
    """
    changed = {uuid: owners for uuid, owners in locked.new_owners.items() if owners}
    if not changed:
        return
    missing = {uuid: owners for uuid, owners in changed.items() if uuid not in locked.consumers}
    of_existing = [owners for uuid, owners in changed.items() if uuid in locked.consumers]
    rows.insert_owners(conn, list(missing.values()), of_existing)
    if missing and conn.execute(statements.set_owners(missing)).rowcount != len(missing):
        raise exception.ConcurrentChange('A project, user or consumer type')


def _update_consumers(conn: sa.Connection, locked: LockedClaims) -> None:
    """Increment the generations of consumers that keep allocations, and delete other consumers."""
    seen: dict[int, int] = {}
    new_owners: dict[int, Mapping[int, str]] = {}
    without_allocations: list[int] = []
    for claim in locked.claims:
        stored = locked.consumers.get(claim.consumer_uuid)
        if stored is None:
            continue
        if claim.allocations:
            seen[stored.id] = stored.generation
            new_owners[stored.id] = locked.new_owners[claim.consumer_uuid]
        else:
            without_allocations.append(stored.id)
    generation.increment_consumers(conn, seen, statements.owner_values(new_owners, by='id'))
    rows.delete_consumers(conn, without_allocations)
