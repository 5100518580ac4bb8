"""The table of each kind of lines, and the column of each field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement.admin.transfer import model
from placement.db.sqlalchemy import models


@dataclass(frozen=True, slots=True)
class Stored:
    """The table of a kind.

    :ivar key: the column with the text by which other lines refer to a row; None if no line refers
        to rows of this kind
    :ivar columns: the names of the columns by field, if they differ from the names of the fields
    """

    table: sa.Table
    key: sa.Column[Any] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> sa.Column[Any]:
        """Return the column of a field."""
        return self.table.c[self.columns.get(name, name)]


_OF_PROVIDER = {'provider': 'resource_provider_id'}
_OF_PROVIDER_AND_CLASS = {**_OF_PROVIDER, 'resource_class': 'resource_class_id'}

BY_KIND: Mapping[str, Stored] = {
    'resource_class': Stored(models.resource_classes, models.resource_classes.c.name),
    'trait': Stored(models.traits, models.traits.c.name),
    'aggregate': Stored(models.placement_aggregates, models.placement_aggregates.c.uuid),
    'provider': Stored(
        models.resource_providers,
        models.resource_providers.c.uuid,
        {'parent': 'parent_provider_id'},
    ),
    'inventory': Stored(models.inventories, None, _OF_PROVIDER_AND_CLASS),
    'provider_trait': Stored(
        models.resource_provider_traits, None, {**_OF_PROVIDER, 'trait': 'trait_id'}
    ),
    'provider_aggregate': Stored(
        models.resource_provider_aggregates, None, {**_OF_PROVIDER, 'aggregate': 'aggregate_id'}
    ),
    'consumer_type': Stored(models.consumer_types, models.consumer_types.c.name),
    'project': Stored(models.projects, models.projects.c.external_id),
    'user': Stored(models.users, models.users.c.external_id),
    'consumer': Stored(
        models.consumers,
        models.consumers.c.uuid,
        {'project': 'project_id', 'user': 'user_id', 'consumer_type': 'consumer_type_id'},
    ),
    'allocation': Stored(
        models.allocations, None, {**_OF_PROVIDER_AND_CLASS, 'consumer': 'consumer_id'}
    ),
}


def of(kind: model.Kind) -> Stored:
    """Return the table of a kind."""
    return BY_KIND[kind.name]


def counts(conn: sa.Connection) -> dict[str, int]:
    """Return the number of rows of each kind, by the name of the kind."""
    columns = (
        sa.select(sa.func.count()).select_from(stored.table).scalar_subquery().label(name)
        for name, stored in BY_KIND.items()
    )
    return dict(conn.execute(sa.select(*columns)).mappings().one())


def is_text(name: str) -> bool:
    """Return whether a column refers to a row by its text instead of its id.

    Only allocations do so: `consumer_id` contains the UUID of the consumer.
    """
    return name == 'consumer'
