"""Delete projects, users, consumer types and aggregates that no other row refers to.

This is not safe while another process writes to the database: a request reads the id of a project
without a lock, and inserts a consumer with this id later.
"""

from collections.abc import Sequence
import functools

import sqlalchemy as sa

from placement import exception
from placement.admin.audit import batches, rows, unused
from placement.admin.audit.model import UNUSED, Change
from placement.admin.progress import Progress
from placement.db import engine, expressions


def purge(report: Progress) -> list[Change]:
    """Delete the unused rows."""
    changes: list[Change] = []
    for kind in unused.KINDS:
        ids = sa.select(kind.table.c.id).where(kind.is_unused()).order_by(kind.table.c.id)
        with engine.snapshot() as conn:
            keys = conn.scalars(ids).all()
        changes += batches.write(UNUSED, keys, functools.partial(_delete, kind), report)
    return changes


def _delete(kind: unused.Kind, ids: Sequence[int], conn: sa.Connection) -> list[Change]:
    table = kind.table
    still = sa.and_(table.c.id.in_(expressions.id_list(ids)), kind.is_unused())
    stored = conn.execute(sa.select(table).where(still).order_by(table.c.id)).mappings().all()
    if conn.execute(sa.delete(table).where(still)).rowcount != len(stored):
        raise exception.ConcurrentChange(f'An unused {kind.name}')
    return [
        Change(UNUSED, {'kind': kind.name, 'name': row[kind.text]}, rows.as_stored(row), None)
        for row in stored
    ]
