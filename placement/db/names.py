"""Look-ups by names and UUIDs, with the collation of the database.

Clients refer to rows by unique texts: names and UUIDs. Which texts are equal depends on the
collation of the column, which differs between engines, releases and tables. Only the database
applies it; Python compares texts only where the unique key proves the result:

* If a requested name is stored exactly as the client wrote it, it equals the name of that row. The
  unique key guarantees that it equals no other name.
* If a look-up by names returns no row, none of the names exists.

In all other cases, a statement joins the requested names with the table.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from placement import exception
from placement.db import portable_sql

# The length of these statements depends on the request, so their compiled form is not cached.
_UNCACHED: dict[str, Any] = {'compiled_cache': None}


@dataclass(frozen=True, slots=True)
class Lookup:
    """Requested names, and the rows that a look-up by these names returned.

    :param column: the column with the unique names
    :param id: the column with the ids
    :param names: the names as the client wrote them
    :param stored: the ids of the returned rows by stored name
    """

    column: sa.Column[Any]
    id: sa.Column[Any]
    names: Collection[str]
    stored: Mapping[str, int]


def ids(
    conn: sa.Connection,
    column: sa.Column[Any],
    names: Collection[str],
    stored: Mapping[str, int],
) -> dict[str, int]:
    """The ids of rows by the names that the client wrote, without names that do not exist.

    :param column: the column with the unique names; its table has the column `id`
    :param stored: the ids of all rows whose name equals one of `names`, by stored name
    """
    return resolve(conn, [Lookup(column, column.table.c.id, names, stored)])[0]


def resolve(conn: sa.Connection, lookups: Sequence[Lookup]) -> list[dict[str, int]]:
    """The ids of each look-up by requested name, without names that do not exist.

    Executes at most one statement, and none if the unique key proves all results.
    """
    resolved = [_proven(lookup) for lookup in lookups]
    unproven = [n for n, ids_ in enumerate(resolved) if ids_ is None]
    if unproven:
        compared = _compare(conn, [lookups[n] for n in unproven])
        for n, matches in zip(unproven, compared, strict=True):
            # Rows that were created after the look-up are not locked, and count as missing.
            returned = set(lookups[n].stored.values())
            resolved[n] = {name: id_ for name, id_ in matches.items() if id_ in returned}
    return [ids_ or {} for ids_ in resolved]


def _proven(lookup: Lookup) -> dict[str, int] | None:
    """The ids by requested name if the unique key proves them, None otherwise."""
    names, stored = lookup.names, lookup.stored
    if not stored:
        return {}
    if all(name in stored for name in names):
        return {name: stored[name] for name in names}
    if len(names) == len(stored) == 1:
        return dict(zip(names, stored.values(), strict=True))
    return None


def _compare(conn: sa.Connection, lookups: Sequence[Lookup]) -> list[dict[str, int]]:
    """The ids by requested name that the database compares as equal to a stored name."""
    selects = [
        _matches(conn, lookup.column, lookup.id, lookup.names).add_columns(
            sa.literal_column(str(number))
        )
        for number, lookup in enumerate(lookups)
    ]
    matches: list[dict[str, int]] = [{} for _ in lookups]
    for name, id_, number in conn.execute(sa.union_all(*selects), execution_options=_UNCACHED):
        matches[number][name] = id_
    return matches


def equal_texts(
    conn: sa.Connection, column: sa.Column[Any], names: Collection[str]
) -> dict[str, str]:
    """The requested names by the texts of a column, which need not be unique, that equal them."""
    statement = _matches(conn, column, portable_sql.StoredText(column), names).distinct()
    return {text: name for name, text in conn.execute(statement, execution_options=_UNCACHED)}


def _matches(
    conn: sa.Connection,
    column: sa.Column[Any],
    result: sa.ColumnElement[Any],
    names: Collection[str],
) -> sa.Select[Any]:
    requested = _requested(conn, column, names)
    # SQLite uses the collation of the left operand.
    return sa.select(portable_sql.StoredText(requested.c.name), result).join_from(
        requested, column.table, column == requested.c.name
    )


def _requested(conn: sa.Connection, column: sa.Column[Any], names: Iterable[str]) -> sa.CTE:
    """The names as rows with the collation of the column.

    In a UNION with a column, a literal has the collation of the column. Without the empty first
    SELECT, the names would have the collation of the connection, and MySQL rejects the comparison
    of columns whose collations differ.
    """
    empty = sa.select(column.label('name')).where(sa.false())
    texts = sorted(names)
    if conn.dialect.name == 'mysql':
        # MySQL and MariaDB have different syntaxes for VALUES.
        return empty.union_all(*(sa.select(sa.literal(text, sa.String)) for text in texts)).cte()
    values = sa.values(sa.column('name', sa.String)).data([(text,) for text in texts])
    return empty.union_all(sa.select(values.cte().c.name)).cte()


def require_distinct(ids_by_name: Mapping[str, Any]) -> None:
    """Check that no two names of a request refer to the same row.

    :param ids_by_name: the id of the row by requested name
    :raises exception.AmbiguousKeys: for the first name whose row an earlier name refers to
    """
    if len(set(ids_by_name.values())) == len(ids_by_name):
        return
    seen = set()
    for name, id_ in ids_by_name.items():
        if id_ in seen:
            raise exception.AmbiguousKeys(name)
        seen.add(id_)


def require_different(conn: sa.Connection, column: sa.Column[Any], names: Collection[str]) -> None:
    """Check that no two names are equal in the collation of the column.

    :raises exception.AmbiguousKeys: for one of several equal names
    """
    requested = _requested(conn, column, names)
    name = requested.c.name
    statement = sa.select(sa.func.min(name)).group_by(name).having(sa.func.count() > 1)
    repeated = conn.execute(statement, execution_options=_UNCACHED).scalar()
    if repeated is not None:
        raise exception.AmbiguousKeys(repeated)


def insert_missing(conn: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose unique key does not exist in the table or earlier in `rows`.

    INSERT IGNORE is not used, because it truncates values that are too long for their column.
    """
    conn.execute(_INSERT_MISSING[conn.dialect.name](table), rows)


def _insert_missing_mysql(table: sa.Table) -> sa.Insert:
    return mysql.insert(table).on_duplicate_key_update(id=table.c.id)


_INSERT_MISSING: dict[str, Any] = {
    'mysql': _insert_missing_mysql,
    'postgresql': lambda table: postgresql.insert(table).on_conflict_do_nothing(),
    'sqlite': lambda table: sqlite.insert(table).on_conflict_do_nothing(),
}
