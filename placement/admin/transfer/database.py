"""Read the rows of the kinds, and find rows that a file cannot describe."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import model as audit
from placement.admin.failure import CannotProceedError
from placement.admin.transfer.kinds import KINDS, LARGEST_RATIO, Field, Kind
from placement.capacity import MAX_INT
from placement.db import sql
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers

# The server limits the number of levels of a recursive statement. MariaDB silently truncates the
# result at the limit.
_DEEPEST = {True: 'max_recursive_iterations', False: 'cte_max_recursion_depth'}
# The finding of `placement-manage audit` for a missing row, by the field that refers to it.
_AUDIT_CODES = {
    'consumer': audit.ORPHAN_ALLOCATION,
    'provider': audit.ORPHAN_PROVIDER,
    'resource_class': audit.UNKNOWN_CLASS,
    'project': audit.OWNER_MISSING,
    'user': audit.OWNER_MISSING,
    'consumer_type': audit.OWNER_MISSING,
    'parent': audit.PARENT_MISSING,
}


def prepare(conn: sa.Connection) -> None:
    """Set the session variables of the server that the statements need."""
    if conn.dialect.name == 'postgresql':
        # PERF: the statements read whole tables. If the statistics are old, for example after an
        # import that was rolled back, a nested loop takes minutes instead of a second
        # (10,000 hosts, 2026-11).
        conn.exec_driver_sql('SET LOCAL enable_nestloop = off')
    if conn.dialect.name != 'mysql':
        return
    variable = _DEEPEST[bool(getattr(conn.dialect, 'is_mariadb', False))]
    conn.exec_driver_sql(f'SET SESSION {variable} = 4294967295')
    # While the reader of a pipe pauses, the server waits for this process.
    conn.exec_driver_sql('SET SESSION net_write_timeout = 31536000')


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
        tree = _tree()
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


def _tree() -> sa.CTE:
    """Return the providers with `id`, `root_id` (the true root) and `depth` (0 for a root).

    Providers whose ancestors are missing or form a cycle are omitted.
    """
    roots = sa.select(
        _PROVIDERS.c.id, _PROVIDERS.c.id.label('root_id'), sa.literal_column('0').label('depth')
    ).where(_PROVIDERS.c.parent_provider_id.is_(None))
    tree = roots.cte('tree', recursive=True)
    return tree.union_all(
        sa.select(_PROVIDERS.c.id, tree.c.root_id, tree.c.depth + 1).join_from(
            tree, _PROVIDERS, _PROVIDERS.c.parent_provider_id == tree.c.id
        )
    )


# Rows that a file cannot describe -------------------------------------------------


def require_sound(conn: sa.Connection, remedy: str) -> None:
    """Check that a file can describe all rows.

    :param remedy: the sentence that follows the description of the rows
    :raises CannotProceedError: the message names the `audit` command that displays the rows
    """
    codes: dict[str, None] = {}
    for kind in KINDS.values():
        for field in _damaged_fields(conn, kind):
            if field.name not in _AUDIT_CODES:
                raise CannotProceedError(
                    f'The table {kind.table.name} has a row whose {field.column.name} is not '
                    'valid, or refers to a row that does not exist. Correct or delete this row.'
                )
            codes[_AUDIT_CODES[field.name]] = None
    codes |= dict.fromkeys(_damaged_trees(conn, audit.PARENT_MISSING in codes))
    if codes:
        raise CannotProceedError(
            'The database has rows that refer to missing rows. '
            f'`placement-manage audit --only {",".join(codes)}` lists them. {remedy}'
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


def _damaged_trees(conn: sa.Connection, lacks_parents: bool) -> Iterator[str]:
    """Yield the finding of `audit` for each kind of damage in the provider trees."""
    tree = _tree()
    wrong = sa.func.coalesce(_PROVIDERS.c.root_provider_id, 0) != tree.c.root_id
    number, wrong_roots = conn.execute(
        sa.select(
            sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((wrong, 1), else_=0)), 0)
        ).join_from(tree, _PROVIDERS, _PROVIDERS.c.id == tree.c.id)
    ).one()
    if wrong_roots:
        yield audit.ROOT_MISSING
    # Providers below a missing parent are not part of a tree either.
    if not lacks_parents and number != counts(conn)['provider']:
        yield audit.PARENT_CYCLE
