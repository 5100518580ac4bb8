"""Look up rows by name or UUID; the collation of the database decides which texts are equal.

Clients refer to rows by unique strings: names and UUIDs. The collation of the column determines
whether two strings are equal, and the collation differs between database systems, releases and
tables. Therefore the database compares the strings. Python compares strings only where the unique
key proves the result:

* If a stored name is identical to a requested name, the unique key guarantees that the requested
  name equals no other stored name.
* If a look-up by names returns no row, none of the requested names exists.

In all other cases, an SQL statement joins the requested names with the table.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import functools
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from placement import exception
from placement.db import sql

# SQLAlchemy does not cache the compiled form of these statements, because their length depends on
# the request.
_UNCACHED: dict[str, Any] = {'compiled_cache': None}


def ids(
    conn: sa.Connection,
    column: sa.Column[Any],
    names: Collection[str],
    stored: Mapping[str, int],
    id_: sa.Column[Any] | None = None,
) -> dict[str, int]:
    """Return the ids of rows by requested name; names that do not exist are omitted.

    This function executes one statement, or no statement if the unique key proves the result.

    :param column: the column with the unique names
    :param names: the requested names, spelled as in the request
    :param stored: the ids, by stored name, of all rows whose names the database considers equal to
        an element of `names`
    :param id_: the column with the ids; by default, the column `id` of the same table
    """
    proven = _proven(names, stored)
    if proven is not None:
        return proven
    matches = _matches(conn, column, column.table.c.id if id_ is None else id_, names)
    # The statement can also return rows that were created after the look-up. The look-up did not
    # lock these rows, so their names count as missing.
    returned = set(stored.values())
    rows = conn.execute(matches, execution_options=_UNCACHED)
    return {name: row_id for name, row_id in rows if row_id in returned}


def _proven(names: Collection[str], stored: Mapping[str, int]) -> dict[str, int] | None:
    """Return the ids by requested name if the unique key proves the result, otherwise None."""
    if not stored:
        return {}
    if all(name in stored for name in names):
        return {name: stored[name] for name in names}
    if len(names) == len(stored) == 1:
        return dict(zip(names, stored.values(), strict=True))
    return None


def equal_texts(
    conn: sa.Connection, column: sa.Column[Any], names: Collection[str]
) -> dict[str, str]:
    """Return a map from each stored text that equals a requested name to this name.

    Several rows of the column may have the same text.
    """
    statement = _matches(conn, column, sql.StoredText(column), names).distinct()
    return {text: name for name, text in conn.execute(statement, execution_options=_UNCACHED)}


def _matches(
    conn: sa.Connection,
    column: sa.Column[Any],
    result: sa.ColumnElement[Any],
    names: Collection[str],
) -> sa.Select[Any]:
    requested = _requested(conn, column, names)
    # The column must be the left operand, because SQLite uses the collation of the left operand.
    return sa.select(sql.StoredText(requested.c.name), result).join_from(
        requested, column.table, column == requested.c.name
    )


def _requested(conn: sa.Connection, column: sa.Column[Any], names: Iterable[str]) -> sa.CTE:
    """Return the requested names as a table with the collation of the column.

    In a UNION with a column, a literal has the collation of that column. Without the empty SELECT
    of the column, the names would have the collation of the connection, and MySQL rejects a
    comparison of columns with different collations.
    """
    empty = sa.select(column.label('name')).where(sa.false())
    texts = sorted(names)
    if conn.dialect.name == 'mysql':
        # The syntax of VALUES differs between MySQL and MariaDB, so this statement uses SELECTs.
        return empty.union_all(*(sa.select(sa.literal(text, sa.String)) for text in texts)).cte()
    values = sa.values(sa.column('name', sa.String)).data([(text,) for text in texts])
    return empty.union_all(sa.select(values.cte().c.name)).cte()


def require_distinct(ids_by_name: Mapping[str, Any]) -> None:
    """Check that all names in a request refer to different rows.

    :param ids_by_name: the id of the row by requested name
    :raises exception.AmbiguousKeys: two names refer to the same row; the error contains the second
        name
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

    :raises exception.AmbiguousKeys: several names are equal; the error contains one of these names
    """
    requested = _requested(conn, column, names)
    name = requested.c.name
    statement = sa.select(sa.func.min(name)).group_by(name).having(sa.func.count() > 1)
    repeated = conn.execute(statement, execution_options=_UNCACHED).scalar()
    if repeated is not None:
        raise exception.AmbiguousKeys(repeated)


def insert_missing(conn: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; skip each row whose unique key exists in the table or earlier in `rows`.

    This function does not use INSERT IGNORE, which truncates values that are too long.
    """
    conn.execute(_insert_missing(conn.dialect.name, table), rows)


@functools.cache
def _insert_missing(dialect: str, table: sa.Table) -> Any:
    if dialect == 'mysql':
        # MySQL rejects `id = id` for the second of two new rows whose names are equal (error 1869).
        return mysql.insert(table).on_duplicate_key_update(created_at=table.c.created_at)
    insert = postgresql.insert if dialect == 'postgresql' else sqlite.insert
    return insert(table).on_conflict_do_nothing()
