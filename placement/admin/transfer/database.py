"""Read the rows of the kinds, and find rows that a file cannot describe."""

from typing import Any

import sqlalchemy as sa

from placement.admin import audit
from placement.admin.audit import model as codes
from placement.admin.audit import trees
from placement.admin.failure import CannotProceedError
from placement.admin.transfer.kinds import KINDS, LARGEST_RATIO, Field, Kind
from placement.capacity import MAX_INT
from placement.db import sql
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers

# The finding of `placement-manage audit` for a missing row, by the field that refers to it.
_AUDIT_CODES = {
    'consumer': codes.ORPHAN_ALLOCATION,
    'provider': codes.ORPHAN_PROVIDER,
    'resource_class': codes.UNKNOWN_CLASS,
    'project': codes.OWNER_MISSING,
    'user': codes.OWNER_MISSING,
    'consumer_type': codes.OWNER_MISSING,
    'parent': codes.PARENT_MISSING,
}


def prepare(conn: sa.Connection) -> None:
    """Set the session variables of the server that the statements need."""
    if conn.dialect.name == 'postgresql':
        # PERF: the statements read whole tables. If the statistics are old, for example after an
        # import that was rolled back, a nested loop takes minutes instead of a second
        # (10,000 hosts, 2026-11).
        conn.exec_driver_sql('SET LOCAL enable_nestloop = off')
    if conn.dialect.name == 'mysql':
        # While the reader of a pipe pauses, the server waits for this process.
        conn.exec_driver_sql('SET SESSION net_write_timeout = 31536000')
    trees.permit_any_depth(conn)


def counts(conn: sa.Connection) -> dict[str, int]:
    """Return the number of rows of each kind."""
    columns = (
        sa.select(sa.func.count()).select_from(kind.table).scalar_subquery().label(name)
        for name, kind in KINDS.items()
    )
    return dict(conn.execute(sa.select(*columns)).mappings().one())


def select(kind: Kind) -> sa.Select[Any]:
    """Return a select of the values of the fields of a kind, in the order of the file."""
    if kind.name == 'provider':
        tree = trees.TREE
        source, values = _join(kind, tree.join(_PROVIDERS, _PROVIDERS.c.id == tree.c.id))
        order: list[sa.ColumnElement[Any]] = [tree.c.depth, sql.CodePointOrder(_PROVIDERS.c.uuid)]
    else:
        source, values = _join(kind, kind.table)
        order = [sql.CodePointOrder(values[name]) for name in kind.key]
    return sa.select(*values.values()).select_from(source).order_by(*order)


def _join(
    kind: Kind, source: sa.FromClause
) -> tuple[sa.FromClause, dict[str, sa.ColumnElement[Any]]]:
    """Return a source with outer joins to what its rows refer to, and the value of each field.

    :param source: the table of the kind
    """
    values: dict[str, sa.ColumnElement[Any]] = {}
    for name, field in kind.fields.items():
        values[name] = field.column
        if field.refers_to:
            other = KINDS[field.refers_to]
            named = other.table.alias()
            referred = named.c[other.text.name]
            key = referred if field.is_text_in_database else named.c.id
            source = source.outerjoin(named, key == field.column)
            values[name] = referred
        elif name == 'generation':
            values[name] = models.generation(kind.table)
    return source, values


# Rows that a file cannot describe -------------------------------------------------


def require_sound(conn: sa.Connection, remedy: str) -> None:
    """Check that a file can describe all rows.

    :param remedy: the sentence that follows the description of the rows
    :raises CannotProceedError: the message names the `audit` command that displays the rows
    """
    found: dict[str, None] = {}
    for kind in KINDS.values():
        for field in _damaged_fields(conn, kind):
            if field.name not in _AUDIT_CODES:
                raise CannotProceedError(
                    f'The table {kind.table.name} has a row whose {field.column.name} is not '
                    'valid, or refers to a row that does not exist. Correct or delete this row.'
                )
            found[_AUDIT_CODES[field.name]] = None
    damaged_trees = audit.findings(conn, [codes.ROOT_MISSING, codes.PARENT_CYCLE], row_limit=0)
    found |= dict.fromkeys(one.code for one in damaged_trees)
    if found:
        raise CannotProceedError(
            'The database has rows that refer to missing rows. '
            f'`placement-manage audit --only {",".join(found)}` lists them. {remedy}'
        )


def _damaged_fields(conn: sa.Connection, kind: Kind) -> list[Field]:
    """Return the fields of a kind that have an invalid value in some row."""
    source, values = _join(kind, kind.table)
    flags = [
        sa.func.max(sa.case((_is_invalid(field, values[name]), 1), else_=0)).label(name)
        for name, field in kind.fields.items()
    ]
    row = conn.execute(sa.select(*flags).select_from(source)).one()
    return [field for field, found in zip(kind.fields.values(), row, strict=True) if found]


def _is_invalid(field: Field, value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return whether a column has an invalid value.

    :param value: the value of the field in the file
    """
    column = field.column
    if field.refers_to:
        is_missing = value.is_(None)
        return sa.and_(column.is_not(None), is_missing) if field.nullable else is_missing
    if field.type is int:
        return sa.or_(column < field.least, column > MAX_INT)
    if field.type is float:
        largest = sa.literal(LARGEST_RATIO, sa.Double)
        return sa.or_(column > largest, column < -largest)
    return sa.false() if field.nullable else column.is_(None)
