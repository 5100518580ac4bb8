"""Lock rows in the global order, and read what the decision needs.

The order is: consumers, owners (inserted in sorted order), providers. Facts that decide are read
by later statements. Concurrent claims wait for the locks, so none of them is judged by usage that
another transaction is changing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.capacity import InventoryKey, InventoryUsage
from placement.claims import consumer, owner, statements
from placement.claims.model import Claim, Consumer, Demand, Ground, Owners, Replacement
from placement.db import names
from placement.db.sqlalchemy import models
from placement.objects import inventory_rows, provider_locks, resource_class
from placement.objects.provider_locks import Locked

# Rows of `statements.ALLOCATIONS_OF_CONSUMERS`.
_Allocations = Sequence[Any]


def lock_consumers(conn: sa.Connection, claims: Iterable[Claim]) -> dict[str, Consumer]:
    """Lock the consumers that exist, and return them by requested UUID.

    :raises exception.AmbiguousKeys: two of the requested UUIDs are one consumer
    """
    uuids = [claim.consumer_uuid for claim in claims]
    return consumer.lock(conn, uuids, {c.consumer_uuid for c in claims if c.allocations})


def prepare_ground(
    conn: sa.Connection,
    claims: Sequence[Claim],
    consumers: Mapping[str, Consumer],
    provider_uuids: Iterable[str] = (),
) -> Ground:
    """Insert missing owners and consumers, lock the providers, and return what was read.

    :param consumers: the result of `lock_consumers`
    :param provider_uuids: providers to lock in addition to those of the claims
    :raises exception.AmbiguousKeys: two requested UUIDs are one consumer or one provider
    :raises exception.ConcurrentChange: a concurrent transaction created a consumer
    """
    allocations = _read_allocations(conn, claims, consumers)
    owners = _create_owners_and_consumers(conn, claims, consumers)
    cleared = _cleared_allocations(conn, claims, consumers, allocations)
    requested = {uuid for claim in claims for uuid in claim.allocations}
    providers = provider_locks.lock(
        conn,
        requested.union(provider_uuids),
        {row.provider_uuid for row in cleared if row.provider_uuid is not None},
    )
    _check_still_absent(conn, claims, consumers)
    return Ground(
        claims=claims,
        consumers=consumers,
        owners=owners,
        allocations=allocations,
        providers=providers,
        missing_providers=frozenset(requested - providers.keys()),
        demands=_demands(claims, consumers, providers),
        released=_released(allocations),
        cleared=frozenset(row.provider_id for row in cleared if row.provider_id is not None),
    )


def read_inventories(conn: sa.Connection, ground: Ground) -> dict[InventoryKey, InventoryUsage]:
    """Return the existing inventories, with usage, that the demands of a request refer to.

    :raises exception.UnknownResourceClasses: a demand names a class that does not exist
    """
    if not ground.demands:
        return {}
    class_names = {demand.resource_class for demand in ground.demands}
    provider_ids = {demand.provider_id for demand in ground.demands}
    inventories = inventory_rows.read_with_usage(conn, provider_ids, class_names)
    _check_classes(conn, class_names - {name for _, name in inventories})
    return inventories


def read_all_inventories(conn: sa.Connection, ground: Ground) -> dict[InventoryKey, InventoryUsage]:
    """Return all inventories, with usage, of all locked providers."""
    provider_ids = {provider.id for provider in ground.providers.values()}
    return inventory_rows.read_with_usage(conn, provider_ids)


def read_class_ids(
    conn: sa.Connection, replacements: Mapping[str, Replacement], claims: Iterable[Claim]
) -> dict[str, int]:
    """Return the ids by name of all classes in a reshape.

    :raises exception.UnknownResourceClasses: for all classes that do not exist
    """
    class_names = {name for new in replacements.values() for name in new.inventories}
    for claim in claims:
        class_names.update(*claim.allocations.values())
    return resource_class.ids(conn, class_names)


def _check_classes(conn: sa.Connection, class_names: Collection[str]) -> None:
    """Check that classes exist of which the requested providers have no inventory."""
    resource_class.ids(conn, class_names)


def _read_allocations(
    conn: sa.Connection, claims: Iterable[Claim], consumers: Mapping[str, Consumer]
) -> _Allocations:
    uuids = {claim.consumer_uuid for claim in claims}
    uuids.update(stored.uuid for stored in consumers.values())
    if not uuids:
        return ()
    return conn.execute(statements.ALLOCATIONS_OF_CONSUMERS, {'uuids': sorted(uuids)}).all()


def _create_owners_and_consumers(
    conn: sa.Connection, claims: Sequence[Claim], consumers: Mapping[str, Consumer]
) -> Owners:
    claiming = [claim for claim in claims if claim.allocations]
    owners = owner.ensure(
        conn,
        {claim.project_id for claim in claiming},
        {claim.user_id for claim in claiming},
        {claim.consumer_type for claim in claiming if claim.consumer_type is not None},
    )
    consumer.create(
        conn,
        {
            claim.consumer_uuid: owner.ids_of(claim, owners)
            for claim in claiming
            if claim.consumer_uuid not in consumers
        },
        [claim.consumer_uuid for claim in claims],
    )
    return owners


def _cleared_allocations(
    conn: sa.Connection,
    claims: Sequence[Claim],
    consumers: Mapping[str, Consumer],
    allocations: _Allocations,
) -> _Allocations:
    """Return the stored allocations of the consumers that have none after the request."""
    emptied = {claim.consumer_uuid for claim in claims if not claim.allocations}
    if not emptied or not allocations:
        return ()
    if len(emptied) == len(claims):
        return allocations
    requested = {stored.uuid: uuid for uuid, stored in consumers.items()}
    requested |= {claim.consumer_uuid: claim.consumer_uuid for claim in claims}
    spellings = {row.consumer_id for row in allocations}
    if not spellings <= requested.keys():
        equal = names.equal_texts(conn, models.allocations.c.consumer_id, requested)
        requested = {spelling: requested[name] for spelling, name in equal.items()}
    return [row for row in allocations if requested.get(row.consumer_id) in emptied]


def _check_still_absent(
    conn: sa.Connection, claims: Iterable[Claim], consumers: Mapping[str, Consumer]
) -> None:
    """Check that the consumers that the request empties are still absent if they were.

    An absent consumer has no row to lock. If a claim has allocations, its consumer is inserted and
    the unique key detects the conflict; a claim without allocations inserts nothing. After this
    check, the locks of the providers keep the usage unchanged.

    :raises exception.ConcurrentChange: a concurrent transaction created one of them
    """
    absent = {claim.consumer_uuid for claim in claims if not claim.allocations} - consumers.keys()
    if not absent:
        return
    if conn.execute(statements.ANY_CONSUMER, {'uuids': sorted(absent)}).first() is not None:
        raise exception.ConcurrentChange('A consumer that the request empties')


def _demands(
    claims: Iterable[Claim], consumers: Mapping[str, Consumer], providers: Mapping[str, Locked]
) -> list[Demand]:
    """Return the requested allocations from existing providers, in the order of the request."""
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
    """Return the sums of allocations by provider and class.

    Allocations whose provider or class does not exist are part of no usage.
    """
    released: dict[InventoryKey, int] = {}
    for row in allocations:
        if row.provider_id is None or row.resource_class is None:
            continue
        key = row.provider_id, row.resource_class
        released[key] = released.get(key, 0) + row.used
    return released
