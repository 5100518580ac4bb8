"""Find providers and consumers without a generation, and set their generation to 0."""

from collections.abc import Sequence
import functools
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement import exception
from placement.admin.audit import batches, consumers, rows
from placement.admin.audit.model import NULL_GENERATION, Change, Row
from placement.admin.progress import Progress
from placement.claims import statements
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import provider_rows

# For each table: the names of a row that has no generation.
_MISSING: dict[sa.Table, sa.Select[Any]] = {
    rows.PROVIDERS: sa.select(*rows.provider_columns(rows.PROVIDERS.c.id))
    .where(rows.PROVIDERS.c.generation.is_(None))
    .order_by(rows.PROVIDERS.c.id),
    models.consumers: consumers.WITH_OWNERS.where(models.consumers.c.generation.is_(None)),
}


def missing() -> Sequence[sa.Select[Any]]:
    """Return selects of the providers and of the consumers without a generation."""
    return list(_MISSING.values())


def set_missing(_conf: cfg.ConfigOpts, report: Progress) -> list[Change]:
    """Set the generation of each provider and consumer that has none to 0."""
    changes: list[Change] = []
    for table in _MISSING:
        uuids = sa.select(table.c.uuid).where(table.c.generation.is_(None)).order_by(table.c.uuid)
        with engine.snapshot() as conn:
            keys = conn.scalars(uuids).all()
        changes += batches.write(NULL_GENERATION, keys, functools.partial(_set, table), report)
    return changes


def _set(table: sa.Table, uuids: Sequence[str], conn: sa.Connection) -> list[Change]:
    """Set the generations that are still missing, after the rows are locked."""
    if table is rows.PROVIDERS:
        locked = provider_rows.lock_rows(conn, uuids)
    else:
        locked = conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(uuids)}).all()
    among = table.c.id.in_([row.id for row in locked])
    found = list(rows.mappings(conn, _MISSING[table].where(among)))
    change = sa.update(table).where(among, table.c.generation.is_(None)).values(generation=0)
    if conn.execute(change).rowcount != len(found):
        raise exception.ConcurrentChange('The generation of a resource provider or consumer')
    return [_change(rows.readable(row)) for row in found]


def _change(identity: Row) -> Change:
    return Change(NULL_GENERATION, identity, {'generation': None}, {'generation': 0})
