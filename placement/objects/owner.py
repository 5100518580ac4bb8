"""Projects, users and consumer types: names that clients make up, created on first use.

The three tables are alike, so one statement looks in all of them. Rows are never deleted.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.db import names
from placement.db.sqlalchemy import models

_PROJECT, _USER, _TYPE = 0, 1, 2
_TABLES = {
    _PROJECT: (models.projects, models.projects.c.external_id),
    _USER: (models.users, models.users.c.external_id),
    _TYPE: (models.consumer_types, models.consumer_types.c.name),
}


def _lookup(kind: int) -> sa.Select[Any]:
    table, name = _TABLES[kind]
    wanted: sa.BindParameter[Any] = sa.bindparam(f'names{kind}', expanding=True)
    return sa.select(
        sa.literal_column(str(kind)).label('kind'), table.c.id, names.spelled(name).label('name')
    ).where(name.in_(wanted))


_OWNERS = sa.union_all(_lookup(_PROJECT), _lookup(_USER))
_OWNERS_AND_TYPES = sa.union_all(_lookup(_PROJECT), _lookup(_USER), _lookup(_TYPE))
_IDS = {kind: _lookup(kind) for kind in _TABLES}


@dataclass(frozen=True, slots=True)
class Owners:
    """Ids of owners by the names that the request uses."""

    projects: Mapping[str, int]
    users: Mapping[str, int]
    types: Mapping[str, int]


def ensure(
    conn: sa.Connection,
    projects: Collection[str],
    users: Collection[str],
    types: Collection[str],
) -> Owners:
    """Find the ids of projects, users and consumer types, and create those that are missing.

    Names that the database compares as equal get the same id.

    :raises oslo_db.exception.DBDuplicateEntry: a rival created one of them at the same time
    """
    requested = {_PROJECT: set(projects), _USER: set(users), _TYPE: set(types)}
    if not projects:
        return Owners({}, {}, {})
    found = _find(conn, _OWNERS_AND_TYPES if types else _OWNERS, requested)
    ids = {
        kind: known | _create(conn, kind, requested[kind] - known.keys())
        for kind, known in found.items()
    }
    return Owners(ids[_PROJECT], ids[_USER], ids[_TYPE])


def _find(
    conn: sa.Connection,
    statement: sa.Select[Any] | sa.CompoundSelect[Any],
    requested: Mapping[int, Collection[str]],
) -> dict[int, dict[str, int]]:
    """By kind, the ids of the requested names that exist."""
    stored: dict[int, dict[str, int]] = {kind: {} for kind in requested}
    parameters = {f'names{kind}': sorted(some) for kind, some in requested.items() if some}
    for kind, id_, name in conn.execute(statement, parameters):
        stored[kind][name] = id_
    lookups = [
        names.Lookup(_TABLES[kind][1], _TABLES[kind][0].c.id, some, stored[kind])
        for kind, some in requested.items()
    ]
    return dict(zip(requested, names.resolve(conn, lookups), strict=True))


def _create(conn: sa.Connection, kind: int, missing: Collection[str]) -> dict[str, int]:
    if not missing:
        return {}
    table, column = _TABLES[kind]
    if len(missing) == 1:  # the rule, and its id comes back with it
        (name,) = missing
        result = conn.execute(sa.insert(table), {column.name: name})
        return {name: result.inserted_primary_key[0]}  # type: ignore[index]
    # Some of the names may be equal to others.
    names.insert_missing(conn, table, [{column.name: name} for name in sorted(missing)])
    return _find(conn, _IDS[kind], {kind: missing})[kind]
