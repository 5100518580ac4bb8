"""Find projects, users, consumer types and aggregates that no other row refers to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models


@dataclass(frozen=True, slots=True)
class Kind:
    """A table whose rows Placement creates when a request names them, and never deletes.

    :param name: the singular of the name of the rows
    :param text: the column with the unique text of a row
    :param reference: the column of another table that refers to the rows
    """

    name: str
    text: sa.Column[Any]
    reference: sa.Column[Any]

    @property
    def table(self) -> sa.Table:
        """The table with the rows."""
        return self.text.table

    def is_unused(self) -> sa.ColumnElement[bool]:
        """Return the condition that no row refers to a row of the table."""
        return ~sa.exists().where(self.reference == self.table.c.id)


KINDS = (
    Kind('project', models.projects.c.external_id, models.consumers.c.project_id),
    Kind('user', models.users.c.external_id, models.consumers.c.user_id),
    Kind('consumer type', models.consumer_types.c.name, models.consumers.c.consumer_type_id),
    Kind(
        'aggregate',
        models.placement_aggregates.c.uuid,
        models.resource_provider_aggregates.c.aggregate_id,
    ),
)


def rows() -> Sequence[sa.Select[Any]]:
    """Return selects of the unused rows, one for each table."""
    return [
        sa.select(sa.literal(kind.name).label('kind'), kind.text.label('name'))
        .where(kind.is_unused())
        .order_by(kind.table.c.id)
        for kind in KINDS
    ]
