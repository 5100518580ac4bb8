"""The SELECT statements of an export. Each one returns the values of the fields of one kind."""

from typing import Any

import sqlalchemy as sa

from placement.admin.transfer import model, tables
from placement.db import sql
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers

# The server limits the number of levels of a recursive statement. MariaDB silently truncates the
# result at the limit.
_DEEPEST = {True: 'max_recursive_iterations', False: 'cte_max_recursion_depth'}


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


def update_statistics(conn: sa.Connection, kind: model.Kind) -> None:
    """Let the planner of the server consider the new rows of a kind.

    On MySQL, such a statement would commit the transaction. SQLite needs no statistics here.
    """
    if conn.dialect.name == 'postgresql':
        conn.exec_driver_sql(f'ANALYZE {tables.of(kind).table.name}')


def select(kind: model.Kind) -> sa.Select[Any]:
    """Return the select of the rows of a kind, in the order of the file."""
    if kind is model.PROVIDER:
        return _select_providers()
    stored = tables.of(kind)
    source: sa.FromClause = stored.table
    columns: dict[str, sa.ColumnElement[Any]] = {}
    for name, type_ in kind.fields.items():
        column: sa.ColumnElement[Any] = stored.column(name)
        if isinstance(type_, model.Text) and type_.refers_to is not None:
            named = tables.BY_KIND[type_.refers_to].table.alias()
            key = tables.BY_KIND[type_.refers_to].key
            assert key is not None  # Fields refer to kinds with a key.
            referred = named.c[key.name] if tables.is_text(name) else named.c.id
            source = source.join(named, referred == column, isouter=type_.nullable)
            column = named.c[key.name]
        elif name == 'generation':
            column = models.generation(stored.table)
        columns[name] = column
    order = (sql.CodePointOrder(columns[name]) for name in kind.key)
    return sa.select(*columns.values()).select_from(source).order_by(*order)


def _select_providers() -> sa.Select[Any]:
    tree = levels()
    parent = _PROVIDERS.alias('parent')
    return (
        sa.select(
            _PROVIDERS.c.uuid,
            _PROVIDERS.c.name,
            models.generation(_PROVIDERS),
            parent.c.uuid.label('parent'),
            _PROVIDERS.c.created_at,
            _PROVIDERS.c.updated_at,
        )
        .select_from(tree)
        .join(_PROVIDERS, _PROVIDERS.c.id == tree.c.id)
        .outerjoin(parent, parent.c.id == _PROVIDERS.c.parent_provider_id)
        .order_by(tree.c.depth, sql.CodePointOrder(_PROVIDERS.c.uuid))
    )


def levels() -> sa.CTE:
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
