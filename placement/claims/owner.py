"""Read and insert projects, users and consumer types, which this code calls owners.

Placement inserts a row when a claim first names the project, user or consumer type, and never
deletes the row. The three tables have similar columns, so one statement can read all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.claims.model import Claim, Owners
from placement.claims.statements import OWNER_IDS, OWNER_TABLES, PROJECT, TYPE, USER
from placement.db import names


def requested_names(claims: Iterable[Claim]) -> dict[int, set[str]]:
    """Return, for each kind of owner, the names in the claims that have allocations."""
    claiming = [claim for claim in claims if claim.allocations]
    return {
        PROJECT: {claim.project_id for claim in claiming},
        USER: {claim.user_id for claim in claiming},
        TYPE: {claim.consumer_type for claim in claiming if claim.consumer_type is not None},
    }


def parameters(requested: Mapping[int, Collection[str]]) -> dict[str, list[str]]:
    """Return the bound parameters of `OWNER_IDS`, for each kind of owner."""
    return {f'names{kind}': sorted(texts) for kind, texts in requested.items()}


def ensure(
    conn: sa.Connection, requested: Mapping[int, set[str]], rows: Iterable[Sequence[Any]]
) -> Owners:
    """Return the ids of projects, users and consumer types, and insert the missing rows.

    Names that the database compares as equal get the same id.

    :param requested: for each kind of owner, the requested names
    :param rows: the rows that the `OWNER_IDS` selected for these names
    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of the rows
    """
    ids = {
        kind: stored | _insert(conn, kind, requested[kind] - stored.keys())
        for kind, stored in _by_name(conn, requested, rows).items()
    }
    return Owners(ids[PROJECT], ids[USER], ids[TYPE])


def ids_of(claim: Claim, owners: Owners) -> tuple[int, int, int | None]:
    """Return the ids of the project, the user and the consumer type of a claim.

    :returns: the three ids; the id of the consumer type is None if the claim names no consumer type
    """
    name = claim.consumer_type
    type_id = None if name is None else owners.types[name]
    return owners.projects[claim.project_id], owners.users[claim.user_id], type_id


def _by_name(
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


def _insert(conn: sa.Connection, kind: int, missing: Collection[str]) -> dict[str, int]:
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
    rows = conn.execute(OWNER_IDS[kind], parameters(requested)).all()
    return _by_name(conn, requested, rows)[kind]
