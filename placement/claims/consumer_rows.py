"""Consumers and their owners: projects, users and consumer types.

Placement stores a consumer only while it has allocations. It inserts the row of an owner when a
claim first names the project, user or consumer type, and never deletes the row. The three tables of
owners have similar columns, so one statement can read all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import threading
from typing import Any
import weakref

import cachetools
from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement import exception
from placement.claims import statements
from placement.claims.claim import Claim, Consumer, Owners
from placement.claims.statements import OWNER_IDS, OWNER_TABLES, PROJECT, TYPE, USER
from placement.db import failures, names
from placement.db.sqlalchemy import models

_UUID = models.consumers.c.uuid

# The maximum number of owners that a process remembers. Their names have at most 255 characters.
MOST_REMEMBERED = 20_000

# The kind and the name of an owner.
_Owner = tuple[int, str]
# A set of owners; the values have no meaning.
_Remembered = cachetools.FIFOCache[_Owner, None]
# The owners that exist, for each database that this process uses.
_remembered: weakref.WeakKeyDictionary[sa.Engine, _Remembered] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


# Consumers ------------------------------------------------------------------------


def lock(
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


def create(
    conn: sa.Connection,
    owners: Mapping[str, tuple[int, int, int | None]],
    requested: Collection[str],
) -> None:
    """Insert consumers with generation 1.

    The generation starts at 1 instead of 0, because the same request also writes allocations.

    :param owners: the ids of the project, user and consumer type of each new consumer, keyed by
        consumer UUID
    :param requested: the UUIDs of all consumers in the request
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer; the
        transaction is rolled back
    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of the
        consumers
    """
    if not owners:
        return
    rows = [
        {
            'uuid': uuid,
            'generation': 1,
            'project_id': project_id,
            'user_id': user_id,
            'consumer_type_id': type_id,
        }
        for uuid, (project_id, user_id, type_id) in sorted(owners.items())
    ]
    try:
        conn.execute(statements.INSERT_CONSUMERS, rows)
    except db_exc.DBError as exc:
        if failures.is_key_violation(exc) and len(requested) > 1:
            # If two requested UUIDs refer to the same consumer, every retry would violate the key
            # again, so reject the request now.
            conn.rollback()
            names.require_different(conn, _UUID, requested)
        raise


def delete(conn: sa.Connection, consumer_ids: Collection[int]) -> None:
    """Delete consumers that have no allocations after the request.

    :raises exception.ConcurrentChange: a concurrent transaction deleted one of the consumers
    """
    if not consumer_ids:
        return
    result = conn.execute(statements.DELETE_CONSUMERS, {'consumer_ids': sorted(consumer_ids)})
    if result.rowcount != len(consumer_ids):
        raise exception.ConcurrentChange('A consumer in this request')


# Owners ---------------------------------------------------------------------------


def requested_owners(claims: Iterable[Claim]) -> dict[int, set[str]]:
    """Return, for each kind of owner, the names in the claims that have allocations."""
    claiming = [claim for claim in claims if claim.allocations]
    return {
        PROJECT: {claim.project_id for claim in claiming},
        USER: {claim.user_id for claim in claiming},
        TYPE: {claim.consumer_type for claim in claiming if claim.consumer_type is not None},
    }


def owner_parameters(requested: Mapping[int, Collection[str]]) -> dict[str, list[str]]:
    """Return the bound parameters of `OWNER_IDS`, for each kind of owner."""
    return {f'names{kind}': sorted(texts) for kind, texts in requested.items()}


def ensure_owners(
    conn: sa.Connection, requested: Mapping[int, set[str]], rows: Iterable[Sequence[Any]]
) -> Owners:
    """Return the ids of projects, users and consumer types, and insert the missing rows.

    Names that the database compares as equal get the same id.

    :param requested: for each kind of owner, the requested names
    :param rows: the rows that the `OWNER_IDS` selected for these names
    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of the rows
    """
    ids = {
        kind: stored | _insert_owners(conn, kind, requested[kind] - stored.keys())
        for kind, stored in _owner_ids_by_name(conn, requested, rows).items()
    }
    return Owners(ids[PROJECT], ids[USER], ids[TYPE])


def owner_ids(claim: Claim, owners: Owners) -> tuple[int, int, int | None]:
    """Return the ids of the project, the user and the consumer type of a claim.

    :returns: the three ids; the id of the consumer type is None if the claim names no consumer type
    """
    name = claim.consumer_type
    type_id = None if name is None else owners.types[name]
    return owners.projects[claim.project_id], owners.users[claim.user_id], type_id


def _owner_ids_by_name(
    conn: sa.Connection,
    requested: Mapping[int, Collection[str]],
    rows: Iterable[Sequence[Any]],
) -> dict[int, dict[str, int]]:
    """Return, for each kind of owner, the ids of the existing owners, keyed by requested name.

    :param rows: the rows that the `OWNER_IDS` selected for the requested names
    """
    stored: dict[int, dict[str, int]] = {kind: {} for kind in requested}
    for row in rows:
        stored[row[0]][row[2]] = row[1]
    lookups = [
        names.Lookup(OWNER_TABLES[kind][1], OWNER_TABLES[kind][0].c.id, texts, stored[kind])
        for kind, texts in requested.items()
    ]
    return dict(zip(requested, names.resolve(conn, lookups), strict=True))


def _insert_owners(conn: sa.Connection, kind: int, missing: Collection[str]) -> dict[str, int]:
    """Insert the missing owners of one kind, and return their ids, keyed by name."""
    if not missing:
        return {}
    table, column = OWNER_TABLES[kind]
    if len(missing) == 1:  # the usual case: the INSERT returns the id
        (name,) = missing
        result = conn.execute(sa.insert(table), {column.name: name})
        key = result.inserted_primary_key
        assert key is not None
        return {name: key[0]}
    # If the database compares several names as equal, only one of them is inserted.
    names.insert_missing(conn, table, [{column.name: name} for name in sorted(missing)])
    requested = {kind: missing}
    rows = conn.execute(OWNER_IDS[kind], owner_parameters(requested)).all()
    return _owner_ids_by_name(conn, requested, rows)[kind]


# The memory of owners -------------------------------------------------------------
#
# A process remembers which owners exist, and does not query the database again. This memory can be
# wrong, for example if a database was restored from a backup while the process ran. Therefore
# callers also detect missing owners.


def insert_unknown_owners(conn: sa.Connection, claim: Claim) -> None:
    """Insert the missing owners of a claim, with one statement for each unknown owner."""
    remembered = _remembered_owners(conn.engine)
    for kind, name in _owners_of(claim):
        if (kind, name) not in remembered:
            insert = statements.INSERT_OWNER_UNLESS_STORED[kind][conn.dialect.name]
            conn.execute(insert, {'name': name})


def remember_owners(engine: sa.Engine, claims: Iterable[Claim]) -> None:
    """Remember the owners of claims whose transaction was committed."""
    remembered = _remembered_owners(engine)
    for claim in claims:
        if claim.allocations:
            for owner in _owners_of(claim):
                if owner not in remembered:
                    with _LOCK:
                        remembered[owner] = None


def forget_owners(engine: sa.Engine, claim: Claim) -> None:
    """Forget the owners of a claim, because one of them may not exist."""
    remembered = _remembered_owners(engine)
    for owner in _owners_of(claim):
        with _LOCK:
            remembered.pop(owner, None)


def forget_all_owners(engine: sa.Engine) -> None:
    """Forget all owners in a database."""
    _remembered.pop(engine, None)


def _remembered_owners(engine: sa.Engine) -> _Remembered:
    owners = _remembered.get(engine)
    if owners is None:
        owners = _remembered.setdefault(engine, _Remembered(MOST_REMEMBERED))
    return owners


def _owners_of(claim: Claim) -> list[_Owner]:
    """Return the owners of a claim in the order in which all transactions insert them."""
    owners = [(PROJECT, claim.project_id), (USER, claim.user_id)]
    if claim.consumer_type is not None:
        owners.append((TYPE, claim.consumer_type))
    return owners
