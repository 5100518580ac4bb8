"""Check the database before and after an import."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from placement.admin.failure import CannotProceedError
from placement.admin.transfer import model, tables, vocabulary
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import resource_class

_PROVIDERS = models.resource_providers
_INVENTORIES = models.inventories
_ALLOCATIONS = models.allocations
_CLASSES = models.resource_classes


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory whose usage exceeds its capacity."""

    provider: str
    name: str | None
    resource_class: str
    used: int
    capacity: float


@dataclass(frozen=True, slots=True)
class OverCapacity:
    """The inventories whose usage exceeds their capacity.

    :ivar count: the number of these inventories
    :ivar first: the first ones by UUID of the provider, at most `SHOWN`
    """

    count: int
    first: tuple[Inventory, ...]


SHOWN = 20


def require_empty(conn: sa.Connection, counts: Mapping[str, int]) -> None:
    """Check that the database has only standard traits and resource classes.

    :param counts: the number of rows of each kind
    :raises CannotProceedError:
    """
    present = []
    for kind in model.KINDS:
        number = counts[kind.name]
        if kind in vocabulary.WITH_STANDARDS:
            number = _count_custom(conn, kind)
        if number:
            present.append(f'{kind.name}: {number}')
    if present:
        raise CannotProceedError(
            f'The database is not empty ({", ".join(present)}). Import the file into an empty '
            'database, or add --force to keep the existing data.'
        )


def _count_custom(conn: sa.Connection, kind: model.Kind) -> int:
    names = conn.scalars(sa.select(tables.of(kind).column('name')))
    return sum(resource_class.is_custom(name) for name in names)


def require_counts(conn: sa.Connection, expected: Mapping[str, int]) -> None:
    """Check the number of rows of each kind.

    :raises CannotProceedError: another program has changed the database during the import
    """
    for name, number in tables.counts(conn).items():
        if number != expected[name]:
            raise CannotProceedError(
                f'The table {tables.BY_KIND[name].table.name} has {number} rows instead of '
                f'{expected[name]}, because another program changes the database. Nothing is '
                'imported. Stop the service, and try again.'
            )


def over_capacity(conn: sa.Connection, last_provider: int) -> OverCapacity:
    """Return the imported inventories whose usage exceeds the capacity.

    :param last_provider: the largest id of a provider before the import
    """
    # PERF: on MariaDB, whose statistics do not include the new rows, a subquery for each inventory
    # takes minutes (10,000 hosts, 2026-11).
    usage = (
        sa.select(
            _ALLOCATIONS.c.resource_provider_id,
            _ALLOCATIONS.c.resource_class_id,
            sa.func.sum(_ALLOCATIONS.c.used).label('used'),
        )
        .where(_ALLOCATIONS.c.resource_provider_id > last_provider)
        .group_by(_ALLOCATIONS.c.resource_provider_id, _ALLOCATIONS.c.resource_class_id)
        .subquery()
    )
    capacity = expressions.capacity(_INVENTORIES)
    exceeded = (
        sa.select(
            _PROVIDERS.c.uuid,
            _PROVIDERS.c.name,
            _CLASSES.c.name.label('resource_class'),
            usage.c.used,
            capacity.label('capacity'),
        )
        .select_from(usage)
        .join(
            _INVENTORIES,
            sa.and_(
                _INVENTORIES.c.resource_provider_id == usage.c.resource_provider_id,
                _INVENTORIES.c.resource_class_id == usage.c.resource_class_id,
            ),
        )
        .join(_PROVIDERS, _PROVIDERS.c.id == _INVENTORIES.c.resource_provider_id)
        .join(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
        .where(usage.c.used > capacity)
    )
    count = conn.scalar(sa.select(sa.func.count()).select_from(exceeded.subquery()))
    if not count:
        return OverCapacity(0, ())
    rows = conn.execute(exceeded.order_by(_PROVIDERS.c.uuid, _CLASSES.c.name).limit(SHOWN))
    first = tuple(Inventory(row[0], row[1], row[2], int(row[3]), row[4]) for row in rows)
    return OverCapacity(count, first)
