"""Checks of texts: those that differ only in letter case, and those that nothing refers to."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import model
from placement.admin.audit.model import NOTICE, PURGE, Audited, Found, finding, rewrites
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
_LINKS = models.resource_provider_aggregates


@finding(NOTICE)
def duplicate_name(audited: Audited) -> Found:
    """Names and UUIDs that differ only in letter case.

    A finding is a group of equal texts, of which at most one is in lower case.

    PERF: usually all UUIDs are in lower case, so the database returns no row of the largest tables.
    """
    found: list[model.Row] = []
    for kind, column in _COLUMNS:
        not_folded = sa.select(column).where(sql.IsFolded(column).is_not(True))
        folded = {text.casefold() for text in audited.scalars(not_folded) if text}
        if folded:
            every = audited.scalars(sa.select(column).where(column.is_not(None)))
            found += [{'kind': kind, 'names': group} for group in _groups(every, folded)]
    return len(found), found[: model.ROW_LIMIT]


def _groups(texts: Iterable[str], folded: set[str]) -> list[list[str]]:
    """Return the groups of texts that are equal when casefolded to one of `folded`, sorted."""
    by_key: dict[str, list[str]] = {}
    for text in texts:
        key = text.casefold()
        if key in folded:
            by_key.setdefault(key, []).append(text)
    return sorted(sorted(group) for group in by_key.values() if len(group) > 1)


# The rows that Placement creates when a request names them, and never deletes. For each table,
# those to which the column of another table does not refer.
_UNUSED = {
    text.table: (
        sa.select(sa.literal(kind).label('kind'), text.label('name'))
        .where(~sa.exists().where(reference == text.table.c.id))
        .order_by(text.table.c.id)
    )
    for kind, text, reference in (
        ('project', models.projects.c.external_id, models.consumers.c.project_id),
        ('user', models.users.c.external_id, models.consumers.c.user_id),
        ('consumer type', models.consumer_types.c.name, models.consumers.c.consumer_type_id),
        ('aggregate', models.placement_aggregates.c.uuid, _LINKS.c.aggregate_id),
    )
}


# The correction is not safe while another process writes to the database: a request reads the id
# of a project without a lock, and inserts a consumer with this id later.
@finding(
    NOTICE,
    fixes=rewrites(_UNUSED),
    command='placement-manage audit --purge --only unused',
    option=PURGE,
)
def unused(audited: Audited) -> Found:
    """Projects, users, consumer types and aggregates without a reference."""
    return audited.rows(*_UNUSED.values())
