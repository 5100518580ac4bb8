"""Delete rows of providers that do not exist."""

from collections.abc import Sequence
import functools
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement import exception
from placement.admin.audit import batches, rows
from placement.admin.audit.model import ORPHAN_PROVIDER, Change
from placement.admin.audit.references import PROVIDER_ROWS, dangling
from placement.admin.audit.rows import PROVIDERS
from placement.admin.progress import Progress
from placement.claims import statements
from placement.db import engine, expressions
from placement.db.sqlalchemy import models

_ALLOCATIONS = models.allocations


def delete_rows(_conf: cfg.ConfigOpts, report: Progress) -> list[Change]:
    """Delete allocations, inventories and links of providers that do not exist."""
    changes: list[Change] = []
    for table in PROVIDER_ROWS:
        work = functools.partial(_delete, table)
        changes += batches.write(ORPHAN_PROVIDER, _read_keys(table), work, report)
    return changes


def _read_keys(table: sa.Table) -> Sequence[Any]:
    """Return the primary keys of the orphaned rows; the keys of allocations with the consumer."""
    missing = dangling(table.c.resource_provider_id, PROVIDERS)
    columns = [*table.primary_key.columns]
    select = (
        sa.select(*columns, *([_ALLOCATIONS.c.consumer_id] if table is _ALLOCATIONS else []))
        .join(missing, missing.c.id == table.c.resource_provider_id)
        .order_by(*columns)
    )
    with engine.snapshot() as conn:
        return conn.execute(select).all()


def _delete(table: sa.Table, keys: Sequence[Any], conn: sa.Connection) -> list[Change]:
    """Delete the rows whose provider still does not exist.

    No lock prevents that the provider is created, but no new provider has the id of an old one.
    """
    if table is _ALLOCATIONS:
        # Every request that changes the allocations of a consumer locks the consumer first.
        uuids = sorted({key.consumer_id for key in keys})
        conn.execute(statements.LOCK_CONSUMERS, {'uuids': uuids}).all()
    orphaned = sa.and_(
        _has_key(table, keys),
        ~sa.exists().where(PROVIDERS.c.id == table.c.resource_provider_id),
    )
    select = PROVIDER_ROWS[table].add_columns(*rows.stored_columns(table)).where(orphaned)
    pairs = [rows.split(row) for row in rows.mappings(conn, select)]
    changes = [Change(ORPHAN_PROVIDER, identity, before, None) for identity, before in pairs]
    if conn.execute(sa.delete(table).where(orphaned)).rowcount != len(changes):
        raise exception.ConcurrentChange('A row of a resource provider that does not exist')
    return changes


def _has_key(table: sa.Table, keys: Sequence[Any]) -> sa.ColumnElement[bool]:
    columns = [*table.primary_key.columns]
    first: sa.ColumnElement[bool] = columns[0].in_(expressions.id_list({key[0] for key in keys}))
    if len(columns) == 1:
        return first
    return sa.and_(first, sa.tuple_(*columns).in_([tuple(key) for key in keys]))
