"""Read and insert projects, users and consumer types, which this code calls owners.

Placement inserts a row when a claim first names the project, user or consumer type, and never
deletes the row. The three tables have similar columns, so one statement can read all of them.
"""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from placement.claims.model import Claim, Owners
from placement.claims.statements import (
    OWNER_IDS,
    OWNER_TABLES,
    PROJECT,
    PROJECT_AND_USER_IDS,
    PROJECT_USER_AND_TYPE_IDS,
    TYPE,
    USER,
)
from placement.db import names


def ensure(
    conn: sa.Connection,
    projects: Collection[str],
    users: Collection[str],
    types: Collection[str],
) -> Owners:
    """Return the ids of projects, users and consumer types, and insert the missing rows.

    Names that the database compares as equal get the same id.

    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of the rows
    """
    if not projects:
        return Owners({}, {}, {})
    requested = {PROJECT: set(projects), USER: set(users), TYPE: set(types)}
    statement = PROJECT_USER_AND_TYPE_IDS if types else PROJECT_AND_USER_IDS
    ids = {
        kind: stored | _insert(conn, kind, requested[kind] - stored.keys())
        for kind, stored in _read(conn, statement, requested).items()
    }
    return Owners(ids[PROJECT], ids[USER], ids[TYPE])


def ids_of(claim: Claim, owners: Owners) -> tuple[int, int, int | None]:
    """Return the ids of the project, the user and the consumer type of a claim.

    :returns: the three ids; the id of the consumer type is None if the claim names no consumer type
    """
    name = claim.consumer_type
    type_id = None if name is None else owners.types[name]
    return owners.projects[claim.project_id], owners.users[claim.user_id], type_id


def _read(
    conn: sa.Connection,
    statement: sa.Select[Any] | sa.CompoundSelect[Any],
    requested: Mapping[int, Collection[str]],
) -> dict[int, dict[str, int]]:
    """Return the ids of the requested owners that exist.

    :param statement: one of the `OWNER_IDS`, or a union of them
    :param requested: for each kind of owner, the names to read
    :returns: for each kind of owner, the ids keyed by requested name
    """
    stored: dict[int, dict[str, int]] = {kind: {} for kind in requested}
    parameters = {f'names{kind}': sorted(texts) for kind, texts in requested.items() if texts}
    for kind, id_, name in conn.execute(statement, parameters):
        stored[kind][name] = id_
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
    return _read(conn, OWNER_IDS[kind], {kind: missing})[kind]
