"""Inventories: how much of a resource class a provider has, and the limits of each allocation.

Each write is one transaction (see `_change`). It reads the inventories with their usage, checks the
request, plans the changes, increments the provider generation, and writes the changes.

If the request contains the provider generation, the increment follows the checks: it locks the
provider, and fails if the generation has changed since it was read. A request without the
generation locks the provider first, so that it waits for concurrent claims and does not fail.

A reshape uses the second half of this module, too: it plans changes, and writes them. The caller
locks the providers before. The number of statements does not depend on the
number of providers and resource classes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
import datetime
import logging
from typing import Any

import sqlalchemy as sa

from placement import capacity, errors, exception, trail
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.db import engine, expressions
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows, resource_class
from placement.objects.provider_rows import WithRequested

LOG = logging.getLogger(__name__)

_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
# The columns are in the order of the fields of `Inventory`.
COLUMNS = (
    _INVENTORIES.c.total,
    _INVENTORIES.c.reserved,
    _INVENTORIES.c.min_unit,
    _INVENTORIES.c.max_unit,
    _INVENTORIES.c.step_size,
    _INVENTORIES.c.allocation_ratio,
)
_FIELDS = tuple(column.name for column in COLUMNS)
_INSERT = sa.insert(_INVENTORIES)
_CLASS_TO_USED = (
    _INVENTORIES.c.resource_class_id,
    _CLASSES.c.name,
    *COLUMNS,
    expressions.used(_INVENTORIES).label('used'),
)
_WITH_USAGE = (
    sa.select(_INVENTORIES.c.resource_provider_id, *_CLASS_TO_USED)
    .select_from(_INVENTORIES)
    .join(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
    .where(_INVENTORIES.c.resource_provider_id.in_(sa.bindparam('provider_ids', expanding=True)))
)
# The inventories of a provider, and the requested classes.
OF_PROVIDER_AND_CLASSES = provider_rows.and_requested(
    provider_rows.with_generation(*_CLASS_TO_USED)
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id),
    _CLASSES.c.name,
    *(sa.null() for _ in _CLASS_TO_USED[2:]),
)
_BY_PROVIDER = (
    provider_rows.with_generation(
        _CLASSES.c.name, *COLUMNS, _INVENTORIES.c.updated_at, _INVENTORIES.c.created_at
    )
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
    .order_by(_INVENTORIES.c.resource_class_id)
)

# The current inventories of a provider, and the ids of the requested classes that exist. Both are
# keyed by class name.
_Current = Mapping[str, InventoryUsage]
_ClassIds = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ListedInventory:
    """An inventory with the additional values that a response contains."""

    resource_class: str
    inventory: Inventory
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that turn the current inventories of a provider into the requested ones.

    :param add: the inventories to insert, keyed by class name
    :param change: the inventories to update, with their new values, keyed by class name
    :param remove: the class names of the inventories to delete
    :param in_use: the class names of the inventories in `remove` against which allocations exist
    :param over_capacity: the class names of the inventories whose usage exceeds their new capacity;
        this is allowed
    """

    add: Mapping[str, Inventory]
    change: Mapping[str, Inventory]
    remove: tuple[str, ...]
    in_use: tuple[str, ...]
    over_capacity: tuple[str, ...]


# Reading ----------------------------------------------------------------------


def list_by_provider(uuid: str) -> tuple[int, list[ListedInventory]]:
    """Return the generation and the inventories of a provider.

    :raises exception.ResourceProviderNotFound:
    """
    current, rows = engine.read(
        lambda conn: provider_rows.read_with_generation(conn, _BY_PROVIDER, uuid)
    )
    return current, [ListedInventory(r[0], Inventory(*r[1:7]), r[7], r[8]) for r in rows]


def get(uuid: str, class_name: str) -> tuple[int, ListedInventory]:
    """Return the generation of a provider and its inventory of one resource class.

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryNotFound: the provider has no inventory of the class, or the class
        does not exist
    """
    current, inventories = list_by_provider(uuid)
    for listed in inventories:
        if listed.resource_class == class_name:
            return current, listed
    raise exception.InventoryNotFound(class_name, uuid)


# Writing ----------------------------------------------------------------------


def create(uuid: str, class_name: str, inventory: Inventory, may_reserve_all: bool) -> int:
    """Create the inventory of a resource class for a provider.

    :param may_reserve_all: whether `reserved` may equal `total` (from microversion 1.26)
    :returns: the new generation of the provider
    :raises exception.ResourceProviderNotFound:
    :raises exception.InvalidInventoryCapacity:
    :raises exception.UnknownResourceClasses:
    :raises exception.InventoryExists: the provider already has inventory of the class
    """

    def replaced(current: _Current, class_ids: _ClassIds) -> _Current:
        resource_class.require([class_name], class_ids)
        if class_name in current:
            raise exception.InventoryExists(class_name, uuid)
        return {}

    return _change(uuid, {class_name: inventory}, replaced, None, may_reserve_all)


def replace(
    uuid: str,
    given_generation: int,
    inventories: Mapping[str, Inventory],
    may_reserve_all: bool,
) -> int:
    """Replace all inventories of a provider.

    :param given_generation: the provider generation in the request
    :param inventories: the new inventories, keyed by class name
    :param may_reserve_all: whether `reserved` may equal `total` (from microversion 1.26)
    :returns: the new generation of the provider
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.InvalidInventoryCapacity:
    :raises exception.UnknownResourceClasses:
    :raises exception.InventoryInUse: allocations exist against an inventory that is removed
    """

    def replaced(current: _Current, class_ids: _ClassIds) -> _Current:
        resource_class.require(inventories, class_ids)
        return current

    return _change(uuid, inventories, replaced, given_generation, may_reserve_all)


def update(
    uuid: str,
    given_generation: int,
    class_name: str,
    inventory: Inventory,
    may_reserve_all: bool,
) -> int:
    """Replace a provider's inventory of one resource class.

    :param given_generation: the provider generation in the request
    :param may_reserve_all: whether `reserved` may equal `total` (from microversion 1.26)
    :returns: the new generation of the provider
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.InvalidInventoryCapacity:
    :raises exception.ResourceClassNotFound:
    :raises exception.InventoryMissingForUpdate: the provider has no inventory of the class
    """

    def replaced(current: _Current, class_ids: _ClassIds) -> _Current:
        if class_name not in class_ids:
            raise exception.ResourceClassNotFound(class_name)
        if class_name not in current:
            raise exception.InventoryMissingForUpdate(class_name, uuid)
        return {class_name: current[class_name]}

    return _change(uuid, {class_name: inventory}, replaced, given_generation, may_reserve_all)


def delete_all(uuid: str) -> None:
    """Delete all inventories of a provider (microversion 1.5).

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryInUse: allocations exist against one of the inventories
    """
    _change(uuid, {}, lambda current, _: current)


def delete(uuid: str, class_name: str) -> None:
    """Delete a provider's inventory of one resource class.

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryNotFound: the provider has no inventory of the class, or the class
        does not exist
    :raises exception.InventoryInUse: allocations exist against the inventory
    """

    def replaced(current: _Current, _: _ClassIds) -> _Current:
        if class_name not in current:
            raise exception.InventoryNotFound(class_name, uuid, deleting=True)
        if current[class_name].used:
            raise exception.InventoryInUse([class_name], uuid, code=errors.CONCURRENT_UPDATE)
        return {class_name: current[class_name]}

    _change(uuid, {}, replaced)


def _change(
    uuid: str,
    requested: Mapping[str, Inventory],
    replaced: Callable[[_Current, _ClassIds], _Current],
    given_generation: int | None = None,
    may_reserve_all: bool = True,
) -> int:
    """Replace inventories of a provider with the requested ones.

    :param replaced: checks the request, and returns the current inventories that it replaces
    :param given_generation: the provider generation in the request, None if it has none
    :returns: the new generation of the provider
    """

    def work(conn: sa.Connection) -> tuple[WithRequested, _Current]:
        if given_generation is None:
            provider_rows.lock_one(conn, uuid)
        provider = provider_rows.read_with_requested(conn, OF_PROVIDER_AND_CLASSES, uuid, requested)
        if given_generation is not None:
            generation.check_provider(provider.uuid, given_generation, provider.generation)
        _check_reservations(provider.uuid, requested, may_reserve_all)
        class_ids = {row[1]: row[0] for row in provider.requested}
        before = replaced({row[1]: _usage(row) for row in provider.rows if row[1]}, class_ids)
        plan = plan_changes(before, requested)
        if plan.in_use:
            raise exception.InventoryInUse(plan.in_use, provider.uuid)
        generation.increment_providers(conn, {provider.id: provider.generation})
        _warn_over_capacity(provider.uuid, plan)
        resource_class.touch(conn, {name: class_ids[name] for name in plan.add})
        current_ids = {name: current.resource_class_id for name, current in before.items()}
        apply_plans(conn, {provider.id: plan}, {**current_ids, **class_ids})
        return provider, before

    provider, before = engine.write(work)
    trail.log(trail.inventories, provider.uuid, provider.name, before, requested)
    return provider.generation + 1


def _check_reservations(
    uuid: str, inventories: Mapping[str, Inventory], may_reserve_all: bool
) -> None:
    for class_name, inventory in inventories.items():
        if not capacity.allows_reservation(inventory, may_reserve_all):
            raise exception.InvalidInventoryCapacity(class_name, uuid)


def _warn_over_capacity(uuid: str, plan: Plan) -> None:
    for class_name in plan.over_capacity:
        LOG.warning(
            'The usage of %s on resource provider %s exceeds its new capacity', class_name, uuid
        )


# Shared with claims --------------------------------------------------------------


def read_with_usage(
    conn: sa.Connection, provider_ids: Iterable[int]
) -> dict[InventoryKey, InventoryUsage]:
    """Return the inventories of providers, with their usage."""
    rows = conn.execute(_WITH_USAGE, {'provider_ids': sorted(provider_ids)})
    return {(row[0], row[2]): _usage(row[1:]) for row in rows}


def _usage(row: Sequence[Any]) -> InventoryUsage:
    """Return the inventory in a row: class id, class name, the columns of `Inventory`, usage."""
    return InventoryUsage(row[0], Inventory(*row[2:8]), int(row[8]))


def plan_changes(current: Mapping[str, InventoryUsage], requested: Mapping[str, Inventory]) -> Plan:
    """Return the changes that turn the current inventories into the requested inventories.

    An existing inventory whose values stay the same is neither updated nor deleted.

    :param current: the stored inventories of the provider, keyed by class name
    :param requested: all inventories of the provider after the request, keyed by class name
    """
    remove = tuple(sorted(current.keys() - requested.keys()))
    existing = {name: new for name, new in requested.items() if name in current}
    return Plan(
        add={name: new for name, new in requested.items() if name not in current},
        change={name: new for name, new in existing.items() if new != current[name].inventory},
        remove=remove,
        in_use=tuple(name for name in remove if current[name].used),
        over_capacity=tuple(
            sorted(name for name, new in existing.items() if current[name].used > new.capacity)
        ),
    )


def apply_plans(
    conn: sa.Connection, plans: Mapping[int, Plan], class_ids: Mapping[str, int]
) -> None:
    """Write changes of inventories, with at most one DELETE, one INSERT and one UPDATE.

    :param plans: the changes of each provider, keyed by provider id
    :param class_ids: the id of each resource class in the plans, keyed by class name
    """
    removed = [(pid, class_ids[name]) for pid, plan in plans.items() for name in plan.remove]
    if removed:
        conn.execute(sa.delete(_INVENTORIES).where(_has_key(removed)))
    rows = [
        {'resource_provider_id': pid, 'resource_class_id': class_ids[name], **_values(inventory)}
        for pid, plan in sorted(plans.items())
        for name, inventory in sorted(plan.add.items())
    ]
    if rows:
        conn.execute(_INSERT, rows)
    _update(
        conn,
        {
            (pid, class_ids[name]): inventory
            for pid, plan in plans.items()
            for name, inventory in plan.change.items()
        },
    )


def _values(inventory: Inventory) -> dict[str, Any]:
    return {field: getattr(inventory, field) for field in _FIELDS}


def _update(conn: sa.Connection, changes: Mapping[tuple[int, int], Inventory]) -> None:
    """Update inventories.

    :param changes: the new values, keyed by provider id and class id
    """
    if not changes:
        return
    values: dict[str, Any] = {}
    for column in COLUMNS:
        new = {getattr(inventory, column.name) for inventory in changes.values()}
        if len(new) == 1:
            values[column.name] = new.pop()
            continue
        whens = [
            (_has_key([key]), sa.literal(getattr(inventory, column.name), column.type))
            for key, inventory in changes.items()
        ]
        values[column.name] = sa.case(*whens, else_=column)
    conn.execute(sa.update(_INVENTORIES).where(_has_key(changes)).values(**values))


def _has_key(keys: Iterable[tuple[int, int]]) -> sa.ColumnElement[bool]:
    """Return a condition that selects the inventories with these keys (provider id, class id)."""
    by_provider: dict[int, list[int]] = {}
    for provider_id, class_id in keys:
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
