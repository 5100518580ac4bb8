"""Names as the database compares them.

Clients refer to rows by unique texts: names and UUIDs. Which texts are equal depends on the
collation of the column, which differs between engines, releases and tables. Only the database
applies it; Python compares texts only where the unique key proves the result:

* If a requested name is stored exactly as the client wrote it, it equals that row. The unique key
  guarantees that it equals no other row.
* If a look-up by names returns no row, none of the names exists.

Everything else is decided by a statement that joins the requested names with the table.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions

from placement import exception

# The length of these statements depends on the request, so their compiled form is not kept.
_UNCACHED: dict[str, Any] = {'compiled_cache': None}


class spelled(functions.GenericFunction[str]):
    """A name as it is stored, for a select that is an arm of a UNION.

    Tables that were created at different times may have different default collations. MySQL and
    MariaDB refuse a UNION of columns whose collations differ.
    """

    inherit_cache = True
    type = sa.String()


@compiler.compiles(spelled)
def _spelled(element: Any, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.clauses, **kw))


@compiler.compiles(spelled, 'mysql', 'mariadb')
def _spelled_mysql(element: Any, compiler: Any, **kw: Any) -> str:
    return f'CONVERT({compiler.process(element.clauses, **kw)} USING utf8mb4) COLLATE utf8mb4_bin'


@dataclass(frozen=True, slots=True)
class Lookup:
    """Requested names, and the rows that a look-up by all of them returned.

    :param column: the column with the unique names
    :param id: the column with the result
    :param names: what the client wrote
    :param found: results by stored name
    """

    column: sa.Column[Any]
    id: sa.Column[Any]
    names: Collection[str]
    found: Mapping[str, int]


def ids(
    conn: sa.Connection,
    column: sa.Column[Any],
    names: Collection[str],
    found: Mapping[str, int],
) -> dict[str, int]:
    """The ids of rows by the names that the client wrote, without names that do not exist.

    :param column: the column with the unique names; its table has the column `id`
    :param found: the ids of all rows that equal one of the names, by stored name
    """
    return resolve(conn, [Lookup(column, column.table.c.id, names, found)])[0]


def resolve(conn: sa.Connection, lookups: Sequence[Lookup]) -> list[dict[str, int]]:
    """The result of each look-up by requested name, without names that do not exist.

    At most one statement, and none if the stored names prove the result.
    """
    resolved = [_proven(lookup) for lookup in lookups]
    unsure = [n for n, known in enumerate(resolved) if known is None]
    if unsure:
        asked = _ask(conn, [lookups[n] for n in unsure])
        for n, matches in zip(unsure, asked, strict=True):
            # Rows that were created after the look-up are not locked, and count as missing.
            current = set(lookups[n].found.values())
            resolved[n] = {name: id_ for name, id_ in matches.items() if id_ in current}
    return [known or {} for known in resolved]


def _proven(lookup: Lookup) -> dict[str, int] | None:
    """The result as far as the unique key proves it, None otherwise."""
    names, found = lookup.names, lookup.found
    if not found:
        return {}
    if all(name in found for name in names):
        return {name: found[name] for name in names}
    if len(names) == len(found) == 1:
        return dict(zip(names, found.values(), strict=True))
    return None


def _ask(conn: sa.Connection, lookups: Sequence[Lookup]) -> list[dict[str, int]]:
    arms = [
        _matches(conn, lookup.column, lookup.id, lookup.names).add_columns(
            sa.literal_column(str(number))
        )
        for number, lookup in enumerate(lookups)
    ]
    matches: list[dict[str, int]] = [{} for _ in lookups]
    for name, id_, number in conn.execute(sa.union_all(*arms), execution_options=_UNCACHED):
        matches[number][name] = id_
    return matches


def equal_texts(
    conn: sa.Connection, column: sa.Column[Any], names: Collection[str]
) -> dict[str, str]:
    """By stored text of a column, which may repeat, the requested name that it equals."""
    statement = _matches(conn, column, spelled(column), names).distinct()
    return {text: name for name, text in conn.execute(statement, execution_options=_UNCACHED)}


def _matches(
    conn: sa.Connection,
    column: sa.Column[Any],
    result: sa.ColumnElement[Any],
    names: Collection[str],
) -> sa.Select[Any]:
    requested = _requested(conn, column, names)
    # SQLite uses the collation of the left operand.
    return sa.select(spelled(requested.c.name), result).join_from(
        requested, column.table, column == requested.c.name
    )


def _requested(conn: sa.Connection, column: sa.Column[Any], names: Iterable[str]) -> sa.CTE:
    """The names as rows that have the collation of the column.

    A literal takes the collation of a column that it is in a UNION with. Without the empty first
    arm the names would have the collation of the connection, and MySQL would refuse to compare
    columns of different collations.
    """
    nothing = sa.select(column.label('name')).where(sa.false())
    texts = sorted(names)
    if conn.dialect.name == 'mysql':
        # MySQL and MariaDB do not agree on the syntax of VALUES.
        return nothing.union_all(*(sa.select(sa.literal(text, sa.String)) for text in texts)).cte()
    values = sa.values(sa.column('name', sa.String)).data([(text,) for text in texts])
    return nothing.union_all(sa.select(values.cte().c.name)).cte()


def require_distinct(found: Mapping[str, Any]) -> None:
    """Check that no two names of a request are one row.

    :param found: the id of the row by requested name
    :raises exception.AmbiguousKeys: for the first name of a row that another name has
    """
    if len(set(found.values())) == len(found):
        return
    seen = set()
    for name, id_ in found.items():
        if id_ in seen:
            raise exception.AmbiguousKeys(name)
        seen.add(id_)


def require_different(conn: sa.Connection, column: sa.Column[Any], names: Collection[str]) -> None:
    """Check that a column can hold all of these names, each in a row of its own.

    :raises exception.AmbiguousKeys: for one of several names that are equal
    """
    requested = _requested(conn, column, names)
    name = requested.c.name
    statement = sa.select(sa.func.min(name)).group_by(name).having(sa.func.count() > 1)
    repeated = conn.execute(statement, execution_options=_UNCACHED).scalar()
    if repeated is not None:
        raise exception.AmbiguousKeys(repeated)


def insert_missing(conn: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, except those whose unique key exists already, in the table or in `rows`.

    Not INSERT IGNORE, which also truncates what is too long for its column.
    """
    conn.execute(_INSERT_MISSING[conn.dialect.name](table), rows)


def _insert_missing_mysql(table: sa.Table) -> sa.Insert:
    return mysql.insert(table).on_duplicate_key_update(id=table.c.id)


_INSERT_MISSING: dict[str, Any] = {
    'mysql': _insert_missing_mysql,
    'postgresql': lambda table: postgresql.insert(table).on_conflict_do_nothing(),
    'sqlite': lambda table: sqlite.insert(table).on_conflict_do_nothing(),
}
