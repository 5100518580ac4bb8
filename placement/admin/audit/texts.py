"""Checks of texts: those that differ only in letter case, and those that nothing refers to."""

from collections.abc import Iterable
import functools
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import model
from placement.db import sql
from placement.db.sqlalchemy import models

UNUSED = 'unused'

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
# The rows that Placement creates when a request names them, and never deletes: their kind, the
# column with their text, and the column of another table that refers to them.
_KINDS: tuple[tuple[str, sa.Column[Any], sa.Column[Any]], ...] = (
    ('project', models.projects.c.external_id, models.consumers.c.project_id),
    ('user', models.users.c.external_id, models.consumers.c.user_id),
    ('consumer type', models.consumer_types.c.name, models.consumers.c.consumer_type_id),
    ('aggregate', models.placement_aggregates.c.uuid, _LINKS.c.aggregate_id),
)


@model.finding('duplicate-name', 'names and UUIDs that differ only in letter case', model.NOTICE)
def duplicate_name(audited: model.Audited) -> model.Found:
    """A finding is a group of equal texts, of which at most one is in lower case.

    PERF: usually all UUIDs are in lower case, so the database returns no row of the largest tables.
    """
    found: list[model.Row] = []
    for kind, column in _COLUMNS:
        not_folded = sa.select(column).where(sql.IsFolded(column).is_not(True))
        folded = {text.casefold() for text in audited.scalars(not_folded) if text}
        if folded:
            every = audited.scalars(sa.select(column).where(column.is_not(None)))
            found += [{'kind': kind, 'names': group} for group in _groups(every, folded)]
    return model.Found(len(found), tuple(found[: audited.row_limit]))


def _groups(texts: Iterable[str], folded: set[str]) -> list[list[str]]:
    """Return the groups of texts that are equal when casefolded to one of `folded`, sorted."""
    by_key: dict[str, list[str]] = {}
    for text in texts:
        key = text.casefold()
        if key in folded:
            by_key.setdefault(key, []).append(text)
    return sorted(sorted(group) for group in by_key.values() if len(group) > 1)


# For each table: all rows, and whether a row is unused.
_UNUSED: dict[Any, tuple[sa.Select[Any], sa.ColumnElement[bool]]] = {
    text.table: (
        sa.select(sa.literal(kind).label('kind'), text.label('name')).order_by(text.table.c.id),
        ~sa.exists().where(reference == text.table.c.id),
    )
    for kind, text, reference in _KINDS
}


def _delete(table: sa.Table, batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Delete the rows that are still unused.

    This is not safe while another process writes to the database: a request reads the id of a
    project without a lock, and inserts a consumer with this id later.
    """
    rows, is_unused = _UNUSED[table]
    return model.delete(conn, table, rows, model.have_keys(table, batch.keys), is_unused)


@model.finding(
    UNUSED,
    'projects, users, consumer types and aggregates without a reference',
    model.NOTICE,
    correction=model.Correction(
        7,
        'deletes the row',
        [
            (
                rows.with_only_columns(table.c.id).where(is_unused),
                functools.partial(_delete, table),
            )
            for table, (rows, is_unused) in _UNUSED.items()
        ],
        model.PURGE,
    ),
)
def unused(audited: model.Audited) -> model.Found:
    return audited.rows(*(rows.where(is_unused) for rows, is_unused in _UNUSED.values()))
