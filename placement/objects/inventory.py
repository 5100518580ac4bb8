"""Inventories: what a provider has of a resource class.

`plan` decides, without a database, what has to be added, changed and dropped; the rest reads
the facts and applies the plan in at most one DELETE, one INSERT and one UPDATE.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
import datetime
import logging
from typing import Any

import sqlalchemy as sa

from placement import capacity, db_api, errors, exception
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.db import clauses
from placement.db.sqlalchemy import models
from placement.objects import generation, resource_class, resource_provider
from placement.objects.resource_provider import Locked

LOG = logging.getLogger(__name__)

_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
_INVENTORY_COLUMNS = (
    _INVENTORIES.c.total,
    _INVENTORIES.c.reserved,
    _INVENTORIES.c.min_unit,
    _INVENTORIES.c.max_unit,
    _INVENTORIES.c.step_size,
    _INVENTORIES.c.allocation_ratio,
)
_INVENTORIES_WITH_CLASS = _INVENTORIES.join(
    _CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id
)
_BY_PROVIDER = (
    resource_provider.with_generation(
        _CLASSES.c.name, *_INVENTORY_COLUMNS, _INVENTORIES.c.updated_at, _INVENTORIES.c.created_at
    )
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == resource_provider.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
    .order_by(_INVENTORIES.c.resource_class_id)
)
_INVENTORY_USAGES = (
    sa.select(
        _INVENTORIES.c.resource_provider_id,
        _CLASSES.c.name,
        _INVENTORIES.c.resource_class_id,
        *_INVENTORY_COLUMNS,
        clauses.used(_INVENTORIES).label('used'),
    )
    .select_from(_INVENTORIES_WITH_CLASS)
    .where(_INVENTORIES.c.resource_provider_id.in_(sa.bindparam('provider_ids', expanding=True)))
)
_INVENTORY_USAGES_OF_CLASSES = _INVENTORY_USAGES.where(
    _CLASSES.c.name.in_(sa.bindparam('names', expanding=True))
)


@dataclass(frozen=True, slots=True)
class Stock:
    """An inventory as clients read it."""

    resource_class: str
    inventory: Inventory
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How to come from the inventories that are to those that are wanted, by class name.

    `over_full` names classes whose new capacity is below what is in use, which is allowed.
    """

    add: Mapping[str, Inventory]
    change: Mapping[str, Inventory]
    drop: tuple[str, ...]
    in_use: tuple[str, ...]
    over_full: tuple[str, ...]


def plan(current: Mapping[str, InventoryUsage], wanted: Mapping[str, Inventory]) -> Plan:
    """Decide what to add, change and drop. Records that stay as they are appear nowhere."""
    drop = tuple(sorted(current.keys() - wanted.keys()))
    return Plan(
        add={name: record for name, record in wanted.items() if name not in current},
        change={
            name: record
            for name, record in wanted.items()
            if name in current and current[name].inventory != record
        },
        drop=drop,
        in_use=tuple(name for name in drop if current[name].used),
        over_full=tuple(
            sorted(
                name
                for name, record in wanted.items()
                if name in current and current[name].used > record.capacity
            )
        ),
    )


def holdings(
    conn: sa.Connection, provider_ids: Iterable[int], names: Iterable[str] | None = None
) -> dict[InventoryKey, InventoryUsage]:
    """Inventories of providers with their usage, of some classes or all, by provider and class."""
    asked: dict[str, Any] = {'provider_ids': sorted(provider_ids)}
    statement = _INVENTORY_USAGES
    if names is not None:
        asked['names'] = sorted(names)
        statement = _INVENTORY_USAGES_OF_CLASSES
    return {
        (row[0], row[1]): InventoryUsage(row[2], Inventory(*row[3:9]), int(row[9]))
        for row in conn.execute(statement, asked)
    }


def apply(
    conn: sa.Connection,
    plans: Mapping[int, Plan],
    class_ids: Mapping[str, int],
) -> None:
    """Carry out plans, by provider id, in one statement of a kind, whatever their number."""
    _drop(conn, {pid: [class_ids[name] for name in plan.drop] for pid, plan in plans.items()})
    rows = [
        {'resource_provider_id': pid, 'resource_class_id': class_ids[name], **asdict(record)}
        for pid, plan in sorted(plans.items())
        for name, record in sorted(plan.add.items())
    ]
    if rows:
        conn.execute(sa.insert(_INVENTORIES), rows)
    _change(
        conn,
        {
            (pid, class_ids[name]): record
            for pid, plan in plans.items()
            for name, record in plan.change.items()
        },
    )


def _spots(spots: Iterable[tuple[int, int]]) -> sa.ColumnElement[bool]:
    by_provider: dict[int, list[int]] = {}
    for provider_id, class_id in spots:
        by_provider.setdefault(provider_id, []).append(class_id)
    return sa.or_(
        sa.false(),
        *(
            sa.and_(
                _INVENTORIES.c.resource_provider_id == provider_id,
                _INVENTORIES.c.resource_class_id.in_(sorted(ids)),
            )
            for provider_id, ids in sorted(by_provider.items())
        ),
    )


def _drop(conn: sa.Connection, gone: Mapping[int, list[int]]) -> None:
    spots = [(pid, class_id) for pid, ids in gone.items() for class_id in ids]
    if spots:
        conn.execute(sa.delete(_INVENTORIES).where(_spots(spots)))


def _change(conn: sa.Connection, records: Mapping[tuple[int, int], Inventory]) -> None:
    if not records:
        return
    values: dict[str, Any] = {}
    for column in _INVENTORY_COLUMNS:
        news = {getattr(record, column.name) for record in records.values()}
        if len(news) == 1:
            values[column.name] = news.pop()
            continue
        whens = [
            (_spots([spot]), sa.literal(getattr(record, column.name), column.type))
            for spot, record in records.items()
        ]
        values[column.name] = sa.case(*whens, else_=column)
    conn.execute(sa.update(_INVENTORIES).where(_spots(records)).values(**values))


# What the API does with it ----------------------------------------------------


def list_by_provider(uuid: str) -> tuple[int, list[Stock]]:
    """A provider's generation and its inventories.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        seen, rows = resource_provider.read_with_generation(conn, _BY_PROVIDER, uuid)
    return seen, [_stock(row) for row in rows]


def get(uuid: str, name: str) -> tuple[int, Stock]:
    """A provider's generation and its inventory of one class.

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryNotFound: the provider has none, or there is no such class
    """
    seen, stocks = list_by_provider(uuid)
    for stock in stocks:
        if stock.resource_class == name:
            return seen, stock
    raise exception.InventoryNotFound(name, uuid)


def _stock(row: Any) -> Stock:
    return Stock(row[0], Inventory(*row[1:7]), row[7], row[8])


def create(uuid: str, name: str, record: Inventory, may_reserve_all: bool) -> int:
    """Add inventory of a class that the provider has none of.

    :param may_reserve_all: from microversion 1.26 on everything may be reserved
    :returns: the provider's new generation
    :raises exception.ResourceProviderNotFound:
    :raises exception.InvalidInventoryCapacity:
    :raises exception.UnknownResourceClasses:
    :raises exception.InventoryExists:
    """

    def work(conn: sa.Connection) -> int:
        provider = resource_provider.lock_one(conn, uuid)
        _require_capacity(provider, {name: record}, may_reserve_all)
        classes = resource_class.ids(conn, [name])
        if (provider.id, name) in holdings(conn, [provider.id], [name]):
            raise exception.InventoryExists(name, uuid)
        resource_class.touch(conn, classes)
        apply(conn, {provider.id: plan({}, {name: record})}, classes)
        return _increment_generation(conn, provider)

    return db_api.write(work)


def replace(
    uuid: str,
    given_generation: int,
    records: Mapping[str, Inventory],
    may_reserve_all: bool,
) -> int:
    """Make `records`, by class, all the inventory that a provider has.

    :param may_reserve_all: from microversion 1.26 on everything may be reserved
    :returns: the provider's new generation
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.InvalidInventoryCapacity:
    :raises exception.UnknownResourceClasses:
    :raises exception.InventoryInUse: a class that is left out has allocations
    """

    def work(conn: sa.Connection) -> int:
        provider = resource_provider.lock_one(conn, uuid)
        resource_provider.require_generation(provider, given_generation)
        _require_capacity(provider, records, may_reserve_all)
        classes = resource_class.ids(conn, records)
        _replace_all(conn, provider, records, classes)
        return _increment_generation(conn, provider)

    return db_api.write(work)


def update(
    uuid: str,
    given_generation: int,
    name: str,
    inventory: Inventory,
    may_reserve_all: bool,
) -> int:
    """Overwrite the inventory that a provider has of one class.

    :returns: the provider's new generation
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.InvalidInventoryCapacity:
    :raises exception.ResourceClassNotFound:
    :raises exception.InventoryMissingForUpdate: the provider has none of the class
    """

    def work(conn: sa.Connection) -> int:
        provider = resource_provider.lock_one(conn, uuid)
        resource_provider.require_generation(provider, given_generation)
        _require_capacity(provider, {name: inventory}, may_reserve_all)
        try:
            classes = resource_class.ids(conn, [name])
        except exception.UnknownResourceClasses:
            raise exception.ResourceClassNotFound(name) from None
        current = holdings(conn, [provider.id], [name])
        if not current:
            raise exception.InventoryMissingForUpdate(name, uuid)
        steps = plan({name: current[provider.id, name]}, {name: inventory})
        _warn(uuid, steps)
        apply(conn, {provider.id: steps}, classes)
        return _increment_generation(conn, provider)

    return db_api.write(work)


def delete_all(uuid: str) -> None:
    """Remove all inventory of a provider (microversion 1.5).

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryInUse:
    """

    def work(conn: sa.Connection) -> None:
        provider = resource_provider.lock_one(conn, uuid)
        _replace_all(conn, provider, {}, {})
        _increment_generation(conn, provider)

    db_api.write(work)


def delete(uuid: str, name: str) -> None:
    """Remove the inventory that a provider has of one class.

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryNotFound: the provider has none, or there is no such class
    :raises exception.InventoryInUse:
    """

    def work(conn: sa.Connection) -> None:
        provider = resource_provider.lock_one(conn, uuid)
        current = holdings(conn, [provider.id], [name])
        holding = current.get((provider.id, name))
        if holding is None:
            raise exception.InventoryNotFound(name, uuid, deleting=True)
        if holding.used:
            raise exception.InventoryInUse([name], uuid, code=errors.CONCURRENT_UPDATE)
        apply(
            conn,
            {provider.id: plan({name: holding}, {})},
            {name: holding.resource_class_id},
        )
        _increment_generation(conn, provider)

    db_api.write(work)


def _replace_all(
    conn: sa.Connection,
    provider: Locked,
    records: Mapping[str, Inventory],
    classes: Mapping[str, int],
) -> None:
    current = {name: held for (_, name), held in holdings(conn, [provider.id]).items()}
    steps = plan(current, records)
    if steps.in_use:
        raise exception.InventoryInUse(steps.in_use, provider.uuid)
    _warn(provider.uuid, steps)
    resource_class.touch(conn, {name: classes[name] for name in steps.add})
    known = {name: held.resource_class_id for name, held in current.items()}
    apply(conn, {provider.id: steps}, {**known, **classes})


def _require_capacity(
    provider: Locked, records: Mapping[str, Inventory], may_reserve_all: bool
) -> None:
    for name, record in records.items():
        if not capacity.allows_reservation(record, may_reserve_all):
            raise exception.InvalidInventoryCapacity(name, provider.uuid)


def _warn(uuid: str, steps: Plan) -> None:
    for name in steps.over_full:
        LOG.warning('Resource provider %s has more of %s in use than its new capacity', uuid, name)


def _increment_generation(conn: sa.Connection, provider: Locked) -> int:
    generation.increment_providers(conn, {provider.id: provider.generation})
    return provider.generation + 1
