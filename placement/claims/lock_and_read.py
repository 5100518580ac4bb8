"""Lock rows in the lock order of the service, and read the data to accept or reject claims.

The lock order is: consumers; owners (projects, users and consumer types, inserted in sorted order);
providers. The data on which acceptance depends is read after the locks are taken. Concurrent claims
wait for these locks, so no claim is checked against usage that another transaction is changing.

`write._insert_directly` inserts unknown owners before the consumer. If the consumer exists, the
transaction continues with the functions of this module. If this ends in a deadlock, the transaction
is repeated.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.capacity import InventoryKey, InventoryUsage
from placement.claims import consumer_rows, statements
from placement.claims.claim import Claim, Consumer, Demand, LockedClaims, Replacement
from placement.db import names
from placement.db.sqlalchemy import models
from placement.objects import inventory_rows, provider_rows, resource_class
from placement.objects.provider_rows import Locked

# The result rows of `statements.ALLOCATIONS_OF_CONSUMERS`.
_Allocations = Sequence[Any]
# The result rows of `statements.ALLOCATIONS_AND_OWNERS`; the first column is the kind of the row.
Rows = Sequence[Any]


def read_if_new(conn: sa.Connection, claims: Sequence[Claim]) -> Rows | None:
    """Read the allocations and owners of claims that all require a new consumer.

    A row that does not exist cannot be locked. So if the client expects that no consumer exists,
    one statement reads the consumers, without a lock, together with the allocations and owners. If
    a concurrent transaction creates one of the consumers later, the unique key rejects the INSERT.

    :returns: None if a consumer exists, or if a claim does not require a new consumer; the caller
        then locks the consumers before their allocations are read
    """
    if not all(claim.requires_new_consumer for claim in claims):
        return None
    uuids = sorted(claim.consumer_uuid for claim in claims)
    parameters = {
        'uuids': uuids,
        **consumer_rows.owner_parameters(consumer_rows.requested_owners(claims)),
    }
    rows = conn.execute(statements.CONSUMERS_ALLOCATIONS_AND_OWNERS, parameters).all()
    return None if any(row[0] == statements.CONSUMER for row in rows) else rows


def lock_consumers(conn: sa.Connection, claims: Iterable[Claim]) -> dict[str, Consumer]:
    """Lock the existing consumers of the claims, and return them keyed by requested UUID.

    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer
    """
    uuids = [claim.consumer_uuid for claim in claims]
    return consumer_rows.lock(conn, uuids, {c.consumer_uuid for c in claims if c.allocations})


def lock_claims(
    conn: sa.Connection,
    claims: Sequence[Claim],
    consumers: Mapping[str, Consumer],
    provider_uuids: Iterable[str] = (),
    rows: Rows | None = None,
) -> LockedClaims:
    """Insert missing owners and consumers, lock the providers, and read the stored data.

    :param consumers: the result of `lock_consumers`
    :param provider_uuids: the UUIDs of further providers to lock, besides those in the claims
    :param rows: the result of `read_if_new`, None if this function has to read the rows
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer, or to
        the same provider
    :raises exception.ConcurrentChange: a concurrent transaction created a consumer of the request
    """
    requested_owners = consumer_rows.requested_owners(claims)
    if rows is None:
        rows = _read_allocations_and_owners(conn, claims, consumers, requested_owners)
    allocations = [row for row in rows if row[0] == statements.ALLOCATION]
    stored_owners = [row for row in rows if row[0] != statements.ALLOCATION]
    owners = consumer_rows.ensure_owners(conn, requested_owners, stored_owners)
    consumer_rows.create(
        conn,
        {
            claim.consumer_uuid: consumer_rows.owner_ids(claim, owners)
            for claim in claims
            if claim.allocations and claim.consumer_uuid not in consumers
        },
        [claim.consumer_uuid for claim in claims],
    )
    removed = _allocations_of_deleted_consumers(conn, claims, consumers, allocations)
    requested = {uuid for claim in claims for uuid in claim.allocations}
    providers = provider_rows.lock(
        conn,
        requested.union(provider_uuids),
        {row.provider_uuid for row in removed if row.provider_uuid is not None},
    )
    if allocations or providers:
        _check_still_absent(conn, claims, consumers)
    return LockedClaims(
        claims=claims,
        consumers=consumers,
        owners=owners,
        allocations=allocations,
        providers=providers,
        missing_providers=frozenset(requested - providers.keys()),
        demands=_demands(claims, consumers, providers),
        released=_released(allocations),
        provider_ids_of_deleted_consumers=frozenset(
            row.provider_id for row in removed if row.provider_id is not None
        ),
    )


def read_inventories(
    conn: sa.Connection, locked: LockedClaims
) -> dict[InventoryKey, InventoryUsage]:
    """Return the stored inventories from which the claims allocate, with their usage.

    :raises exception.UnknownResourceClasses: lists all requested classes that do not exist
    """
    if not locked.demands:
        return {}
    class_names = {demand.resource_class for demand in locked.demands}
    provider_ids = {demand.provider_id for demand in locked.demands}
    inventories = inventory_rows.read_with_usage(conn, provider_ids, class_names)
    # An unknown class is reported in preference to a missing inventory.
    resource_class.ids(conn, class_names - {name for _, name in inventories})
    return inventories


def read_all_inventories(
    conn: sa.Connection, replacements: Mapping[str, Replacement], locked: LockedClaims
) -> tuple[dict[InventoryKey, InventoryUsage], dict[str, int]]:
    """Return all inventories of the locked providers of a reshape, and the ids of its classes.

    :returns: the inventories with their usage, and the ids keyed by class name
    :raises exception.UnknownResourceClasses: lists all requested classes that do not exist
    """
    class_names = {name for new in replacements.values() for name in new.inventories}
    for claim in locked.claims:
        class_names.update(*claim.allocations.values())
    provider_ids = {provider.id for provider in locked.providers.values()}
    inventories, stored_ids = inventory_rows.read_with_usage_and_class_ids(
        conn, provider_ids, class_names
    )
    return inventories, resource_class.require(class_names, stored_ids)


def _read_allocations_and_owners(
    conn: sa.Connection,
    claims: Iterable[Claim],
    consumers: Mapping[str, Consumer],
    requested_owners: Mapping[int, Collection[str]],
) -> Rows:
    """Return the stored allocations of the consumers, and the requested owners that exist.

    One statement reads both, because neither depends on the other.
    """
    uuids = {claim.consumer_uuid for claim in claims}
    uuids.update(stored.uuid for stored in consumers.values())
    if not uuids:
        return ()
    if not requested_owners[statements.PROJECT]:
        parameters = {'uuids': sorted(uuids)}
        return conn.execute(statements.ALLOCATIONS_OF_CONSUMERS, parameters).all()
    parameters = {'uuids': sorted(uuids), **consumer_rows.owner_parameters(requested_owners)}
    return conn.execute(statements.ALLOCATIONS_AND_OWNERS, parameters).all()


def _allocations_of_deleted_consumers(
    conn: sa.Connection,
    claims: Sequence[Claim],
    consumers: Mapping[str, Consumer],
    allocations: _Allocations,
) -> _Allocations:
    """Return the stored allocations of the consumers whose allocations the request removes.

    A claim without allocations removes all allocations of its consumer, and deletes the consumer.
    """
    deleted = {claim.consumer_uuid for claim in claims if not claim.allocations}
    if not deleted or not allocations:
        return ()
    if len(deleted) == len(claims):
        return allocations
    requested = {stored.uuid: uuid for uuid, stored in consumers.items()}
    requested |= {claim.consumer_uuid: claim.consumer_uuid for claim in claims}
    spellings = {row.consumer_id for row in allocations}
    if not spellings <= requested.keys():
        # Some stored UUIDs equal requested UUIDs only under the collation of the column (for
        # example, their letter case differs), so the database has to match them.
        equal = names.equal_texts(conn, models.allocations.c.consumer_id, requested)
        requested = {spelling: requested[name] for spelling, name in equal.items()}
    return [row for row in allocations if requested.get(row.consumer_id) in deleted]


def _check_still_absent(
    conn: sa.Connection, claims: Iterable[Claim], consumers: Mapping[str, Consumer]
) -> None:
    """Check that a consumer that `lock_consumers` did not find still does not exist.

    This check concerns only the consumers of claims without allocations. A concurrent transaction
    can have created one of them after `lock_consumers`. A consumer that does not exist has no row
    to lock. If its claim has allocations, the consumer is inserted, and the unique key detects a
    concurrent insert. For a claim without allocations, nothing is inserted. After this check, the
    provider locks prevent other transactions from changing the usage.

    If the request found no allocations and locks no provider, the check is not necessary: such a
    request deletes nothing, and does not depend on any usage. A consumer that a concurrent
    transaction creates then counts as created after the request.

    :raises exception.ConcurrentChange: a concurrent transaction created such a consumer
    """
    absent = {claim.consumer_uuid for claim in claims if not claim.allocations} - consumers.keys()
    if not absent:
        return
    if conn.execute(statements.ANY_CONSUMER, {'uuids': sorted(absent)}).first() is not None:
        raise exception.ConcurrentChange('A consumer whose allocations the request removes')


def _demands(
    claims: Iterable[Claim], consumers: Mapping[str, Consumer], providers: Mapping[str, Locked]
) -> list[Demand]:
    """Return one demand for each requested allocation from an existing provider.

    The demands have the order of the request body.
    """
    demands = []
    for claim in claims:
        stored = consumers.get(claim.consumer_uuid)
        consumer_uuid = stored.uuid if stored else claim.consumer_uuid
        for uuid, amounts in claim.allocations.items():
            provider = providers.get(uuid)
            if provider is None:
                continue
            for name, amount in amounts.items():
                demands.append(Demand(consumer_uuid, provider.id, uuid, name, amount))
    return demands


def _released(allocations: _Allocations) -> dict[InventoryKey, int]:
    """Return the sum of the allocations for each pair of provider and resource class.

    Allocations whose provider or class does not exist do not count towards any usage.
    """
    released: dict[InventoryKey, int] = {}
    for row in allocations:
        if row.provider_id is None or row.resource_class is None:
            continue
        key = row.provider_id, row.resource_class
        released[key] = released.get(key, 0) + row.used
    return released
