"""Lock, read, insert and delete the rows of claims.

The lock order of the service is: consumers, providers, missing owners (projects, users and consumer
types, inserted in sorted order). The data on which acceptance depends is read after the locks of
consumers and providers are taken. Concurrent claims wait for these locks, so no claim is checked
against usage that another transaction is changing.

Placement stores a consumer only while it has allocations. It inserts the row of an owner when a
claim first names the project, user or consumer type, and never deletes the row.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from placement import exception
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.claims import statements
from placement.claims.claim import Allocation, Claim, Consumer, Facts, Owners, Provider, Replacement
from placement.db import names
from placement.db.sqlalchemy import models
from placement.objects import generation
from placement.objects.provider_rows import Locked

_UUID = models.consumers.c.uuid


# Consumers ------------------------------------------------------------------------


def lock_consumers(
    conn: sa.Connection, uuids: Collection[str], new: Collection[str] = ()
) -> dict[str, Consumer]:
    """Lock the requested consumers that exist, and return them keyed by requested UUID.

    :param new: the UUIDs of consumers that the caller inserts if they do not exist; if the database
        contains such a UUID in another spelling, the unique key rejects the insert
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer
    """
    rows = conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(uuids)})
    stored = {row.uuid: Consumer(*row) for row in rows}
    requested = set(uuids)
    if stored.keys() <= requested and requested - stored.keys() <= set(new):
        return stored
    ids = names.ids(
        conn, _UUID, requested, {uuid: consumer.id for uuid, consumer in stored.items()}
    )
    names.require_distinct(ids)
    by_id = {consumer.id: consumer for consumer in stored.values()}
    return {uuid: by_id[id_] for uuid, id_ in ids.items()}


def insert_consumers(conn: sa.Connection, claims: Iterable[Claim]) -> None:
    """Insert the consumers of claims. Owners that do not exist stay missing.

    :raises oslo_db.exception.DBDuplicateEntry: one of the consumers exists
    """
    parameters: dict[str, Any] = {}
    number = -1
    for number, claim in enumerate(sorted(claims, key=lambda claim: claim.consumer_uuid)):
        parameters[f'uuid_{number}'] = claim.consumer_uuid
        for kind, name in enumerate(claim.owners):
            parameters[f'{kind}_{number}'] = name
    if parameters:
        conn.execute(statements.insert_consumers(number + 1), parameters)


def delete_consumers(conn: sa.Connection, consumer_ids: Collection[int]) -> None:
    """Delete consumers that have no allocations after the request.

    :raises exception.ConcurrentChange: a concurrent transaction deleted one of the consumers
    """
    if not consumer_ids:
        return
    result = conn.execute(statements.DELETE_CONSUMERS, {'consumer_ids': sorted(consumer_ids)})
    if result.rowcount != len(consumer_ids):
        raise exception.ConcurrentChange('A consumer in this request')


def require_different(conn: sa.Connection, claims: Collection[Claim]) -> None:
    """Check that all claims are of different consumers.

    If two requested UUIDs refer to the same new consumer, every INSERT would violate the key.

    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer
    """
    if len(claims) > 1:
        names.require_different(conn, _UUID, [claim.consumer_uuid for claim in claims])


def check_still_absent(
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


# Owners ---------------------------------------------------------------------------


def insert_owners(
    conn: sa.Connection,
    missing: Sequence[Mapping[int, str]],
    of_existing: Sequence[Mapping[int, str]],
) -> None:
    """Insert the owners that do not exist, with at most two statements for each kind.

    Names that the database compares as equal get the same row.

    :param missing: owners that do not exist, keyed by their index in `Owners`
    :param of_existing: the new owners of existing consumers, some of which exist
    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of the rows
    """
    for kind, column in enumerate(statements.OWNER_NAMES):
        texts = {named[kind] for named in of_existing if kind in named}
        if texts:
            texts.difference_update(names.equal_texts(conn, column, texts).values())
        texts.update(named[kind] for named in missing if kind in named)
        added = [{column.name: text} for text in sorted(texts)]
        if len(added) == 1:  # the usual case; a key violation is retried
            conn.execute(sa.insert(column.table), added[0])
        elif added:
            # If the database compares several names as equal, only one of them is inserted.
            names.insert_missing(conn, column.table, added)


# Providers ------------------------------------------------------------------------


def increment_providers(
    conn: sa.Connection,
    locked: Mapping[str, Locked],
    changed: Iterable[str],
    replacements: Mapping[str, Replacement],
) -> None:
    """Increment the generations of locked providers.

    :param locked: the providers, keyed by requested or stored UUID
    :param changed: the UUIDs of the providers of new allocations, and of the old allocations of
        each consumer that the request deletes. If a consumer drops one provider but keeps
        allocations from others, the generation of the dropped provider is not incremented
    :param replacements: the new inventories of a reshape, keyed by requested UUID
    :raises exception.ConcurrentChange: a concurrent transaction changed one of the providers
    """
    total = {locked[uuid].id: new.increment for uuid, new in replacements.items()}
    for provider_id in {locked[uuid].id for uuid in changed if uuid in locked}:
        total[provider_id] = total.get(provider_id, 0) + 1
    providers = [provider for provider in locked.values() if provider.id in total]
    seen = {provider.id: provider.generation for provider in providers}
    try:
        generation.increment_providers(conn, seen, total)
    except exception.ConcurrentChange as exc:
        uuids = {provider.uuid for provider in providers}
        raise exception.ConcurrentChange(exc.what, uuids) from exc


# Facts ----------------------------------------------------------------------------


def read_facts(
    conn: sa.Connection, provider_uuids: Iterable[str], consumer_uuids: Iterable[str]
) -> Facts:
    """Return all inventories of providers, and the allocations and owners of consumers."""
    parameters = {
        'provider_uuids': sorted(provider_uuids),
        'consumer_uuids': sorted(consumer_uuids),
    }
    providers: dict[int, Provider] = {}
    inventories: dict[InventoryKey, InventoryUsage] = {}
    allocations = []
    owners: dict[str, Owners] = {}
    for text in conn.scalars(statements.FACTS, parameters).all():
        kind, *values = orjson.loads(text)
        if kind == statements.ALLOCATION:
            allocations.append(Allocation(*values))
        elif kind == statements.CONSUMER:
            uuid, *names_of_owners = values
            owners[uuid] = tuple(names_of_owners)
        else:
            id_, uuid, class_name, class_id, used, *fields, ratio = values
            providers[id_] = Provider(id_, uuid)
            if class_name is not None:
                inventory = Inventory(*[*fields, float(ratio)])
                inventories[id_, class_name] = InventoryUsage(class_id, inventory, int(used))
    return Facts(providers, inventories, allocations, owners)
