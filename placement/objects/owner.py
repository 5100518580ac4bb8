"""Projects, users and consumer types: names that clients make up, created on first use.

The three tables are alike, so one statement looks in all of them. Rows are never deleted.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.objects import keys

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
        sa.literal_column(str(kind)).label('kind'), table.c.id, name.label('name')
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

    :raises oslo_db.exception.DBDuplicateEntry: a rival created one of them at the same time
    """
    names = {_PROJECT: projects, _USER: users, _TYPE: types}
    statement = _OWNERS_AND_TYPES if types else _OWNERS
    kinds = [kind for kind in names if names[kind]]
    rows = (
        conn.execute(statement, {f'names{kind}': sorted(set(names[kind])) for kind in kinds}).all()
        if projects
        else []
    )
    ids = {
        kind: _complete(conn, kind, names[kind], [row for row in rows if row.kind == kind])
        for kind in names
    }
    return Owners(ids[_PROJECT], ids[_USER], ids[_TYPE])


def _complete(
    conn: sa.Connection, kind: int, names: Collection[str], rows: list[Any]
) -> dict[str, int]:
    found = {name: row.id for name, row in keys.match(conn, names, rows, 'name').items()}
    missing = sorted(set(names) - set(found))
    if not missing:
        return found
    table, column = _TABLES[kind]
    if len(missing) == 1:  # the rule, and its id comes back with it
        (name,) = missing
        result = conn.execute(sa.insert(table), {column.name: name})
        return {**found, name: result.inserted_primary_key[0]}  # type: ignore[index]
    new = keys.one_of_each(conn, missing)
    conn.execute(sa.insert(table), [{column.name: name} for name in new])
    created = conn.execute(_IDS[kind], {f'names{kind}': missing}).all()
    return {**found, **{n: row.id for n, row in keys.match(conn, missing, created, 'name').items()}}
