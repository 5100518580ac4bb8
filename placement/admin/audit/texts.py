"""Checks of texts: those that differ only in letter case, and those that nothing refers to."""

from collections.abc import Iterable, Sequence
import functools
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.admin.audit import model
from placement.db import expressions, sql
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
        folded = {text.casefold() for text in model.scalars(audited.conn, not_folded) if text}
        if folded:
            every = model.scalars(audited.conn, sa.select(column).where(column.is_not(None)))
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


def _is_unused(text: sa.Column[Any], reference: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return ~sa.exists().where(reference == text.table.c.id)


def _purge(repair: model.Repair) -> list[model.Change]:
    """Delete the unused rows.

    This is not safe while another process writes to the database: a request reads the id of a
    project without a lock, and inserts a consumer with this id later.
    """
    changes: list[model.Change] = []
    for kind, text, reference in _KINDS:
        id_ = text.table.c.id
        unused = sa.select(id_).where(_is_unused(text, reference)).order_by(id_)
        changes += repair.write(
            model.keys(unused), functools.partial(_delete, kind, text, reference)
        )
    return changes


def _delete(
    kind: str,
    text: sa.Column[Any],
    reference: sa.Column[Any],
    ids: Sequence[int],
    conn: sa.Connection,
) -> list[model.Change]:
    table = text.table
    still = sa.and_(table.c.id.in_(expressions.id_list(ids)), _is_unused(text, reference))
    stored = list(model.mappings(conn, sa.select(table).where(still).order_by(table.c.id)))
    if conn.execute(sa.delete(table).where(still)).rowcount != len(stored):
        raise exception.ConcurrentChange(f'An unused {kind}')
    return [
        model.Change({'kind': kind, 'name': row[text.name]}, model.as_stored(row), None)
        for row in stored
    ]


@model.finding(
    UNUSED,
    'projects, users, consumer types and aggregates without a reference',
    model.NOTICE,
    correction=model.Correction(7, 'deletes the row', _purge, model.PURGE),
)
def unused(audited: model.Audited) -> model.Found:
    return audited.rows(
        *(
            sa.select(sa.literal(kind).label('kind'), text.label('name'))
            .where(_is_unused(text, reference))
            .order_by(text.table.c.id)
            for kind, text, reference in _KINDS
        )
    )
