"""Find rows that a file cannot describe, because a row that they refer to does not exist."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import model as audit
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import model, statements, tables
from placement.capacity import MAX_INT
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers

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


def require_none(conn: sa.Connection, remedy: str) -> None:
    """Check that a file can describe all rows.

    :param remedy: the sentence that follows the description of the rows
    :raises CannotProceedError: the message names the `audit` command that displays the rows
    """
    codes: dict[str, None] = {}
    for kind in model.KINDS:
        for name in _damaged_fields(conn, kind):
            code = _AUDIT_CODES.get(name)
            if code is None:
                raise CannotProceedError(_sentence(kind, name))
            codes[code] = None
    codes |= dict.fromkeys(_damaged_trees(conn, audit.PARENT_MISSING in codes))
    if codes:
        raise CannotProceedError(
            'The database has rows that refer to missing rows. '
            f'`placement-manage audit --only {",".join(codes)}` lists them. {remedy}'
        )


def _sentence(kind: model.Kind, name: str) -> str:
    table, column = tables.of(kind).table.name, tables.of(kind).column(name).name
    if name in kind.references:
        return (
            f'The table {table} has a row whose {column} refers to a row that does not exist. '
            'Delete this row.'
        )
    return (
        f'The table {table} has a row with an invalid value in the column {column}. Correct or '
        'delete this row.'
    )


def _damaged_fields(conn: sa.Connection, kind: model.Kind) -> Iterator[str]:
    """Yield each field of a kind that has an invalid value in some row."""
    flags = _select_flags(kind)
    row = conn.execute(flags).mappings().one()
    yield from (name for name, is_damaged in row.items() if is_damaged)


def _select_flags(kind: model.Kind) -> sa.Select[Any]:
    """Return a select of one row, which is 1 for each field with an invalid value."""
    stored = tables.of(kind)
    source: sa.FromClause = stored.table
    flags = []
    for name, type_ in kind.fields.items():
        column = stored.column(name)
        condition = _invalid_number(column, type_)
        if isinstance(type_, model.Text) and type_.refers_to is not None:
            referred = tables.BY_KIND[type_.refers_to]
            assert referred.key is not None  # Fields refer to kinds with a key.
            named = referred.table.alias()
            other = named.c[referred.key.name] if tables.is_text(name) else named.c.id
            source = source.outerjoin(named, other == column)
            condition = sa.and_(column.is_not(None), named.c[referred.key.name].is_(None))
        elif isinstance(type_, model.Text) and not type_.nullable:
            condition = column.is_(None)
        if condition is not None:
            flags.append(sa.func.max(sa.case((condition, 1), else_=0)).label(name))
    return sa.select(*flags).select_from(source)


def _invalid_number(column: sa.Column[Any], type_: model.Type) -> sa.ColumnElement[bool] | None:
    if isinstance(type_, model.Integer):
        return sa.or_(column < type_.least, column > MAX_INT)
    if isinstance(type_, model.Ratio):
        largest = sa.literal(model.LARGEST_RATIO, sa.Double)
        return sa.or_(column > largest, column < -largest)
    return None


def _damaged_trees(conn: sa.Connection, lacks_parents: bool) -> Iterator[str]:
    """Yield the finding of `audit` for each kind of damage in the provider trees."""
    tree = statements.levels()
    wrong = sa.func.coalesce(_PROVIDERS.c.root_provider_id, 0) != tree.c.root_id
    number, wrong_roots = conn.execute(
        sa.select(
            sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((wrong, 1), else_=0)), 0)
        ).join_from(tree, _PROVIDERS, _PROVIDERS.c.id == tree.c.id)
    ).one()
    if wrong_roots:
        yield audit.ROOT_MISSING
    # Providers below a missing parent are not part of a tree either.
    if not lacks_parents and number != conn.scalar(
        sa.select(sa.func.count()).select_from(_PROVIDERS)
    ):
        yield audit.PARENT_CYCLE
