"""Read the names and UUIDs that are equal when letter case is ignored."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import duplicates
from placement.admin.audit.model import Found
from placement.db import sql
from placement.db.sqlalchemy import models

# What the texts are, and the column. The texts of a column are unique.
_COLUMNS: tuple[tuple[str, sa.Column[Any]], ...] = (
    ('provider name', models.resource_providers.c.name),
    ('provider UUID', models.resource_providers.c.uuid),
    ('consumer UUID', models.consumers.c.uuid),
    ('resource class', models.resource_classes.c.name),
    ('trait', models.traits.c.name),
    ('aggregate UUID', models.placement_aggregates.c.uuid),
    ('project', models.projects.c.external_id),
    ('user', models.users.c.external_id),
    ('consumer type', models.consumer_types.c.name),
)
# The rows that a driver receives together.
_FETCHED = 10_000


def read_duplicates(conn: sa.Connection, row_limit: int) -> Found:
    """Count the groups of texts that are equal when letter case is ignored, and read the first.

    At most one text of such a group is in lower case. PERF: usually all UUIDs are in lower case, so
    the database returns no row of the largest tables.
    """
    count = 0
    rows: list[dict[str, Any]] = []
    for kind, column in _COLUMNS:
        not_folded = sa.select(column).where(sql.IsFolded(column).is_not(True))
        folded = frozenset(text.casefold() for text in _texts(conn, not_folded))
        if not folded:
            continue
        every = sa.select(column).where(column.is_not(None))
        groups = duplicates.groups(_texts(conn, every), folded)
        count += len(groups)
        missing = max(0, row_limit - len(rows))
        rows.extend({'kind': kind, 'names': list(group)} for group in groups[:missing])
    return Found(count, tuple(rows))


def _texts(conn: sa.Connection, select: sa.Select[Any]) -> Iterator[str]:
    rows = conn.scalars(select, execution_options={'yield_per': _FETCHED})
    return (text for text in rows if text is not None)
