"""Inventories: how much of a resource class a provider has, and the limits of each allocation.

Each write is one transaction (see `_change`). It reads the inventories with their usage, checks the
request, plans the changes, increments the provider generation, and writes the changes.

If the request contains the provider generation, the increment follows the checks: it locks the
provider, and fails if the generation has changed since it was read. A request without the
generation locks the provider first, so that it waits for concurrent claims and does not fail.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import datetime
import logging

import sqlalchemy as sa

from placement import capacity, errors, exception, trail
from placement.capacity import Inventory, InventoryUsage
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows, resource_class
from placement.objects.inventory_rows import (
    COLUMNS,
    OF_PROVIDER_AND_CLASSES,
    Plan,
    apply_plans,
    plan_changes,
    usage,
)
from placement.objects.provider_rows import WithRequested

LOG = logging.getLogger(__name__)

_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
_BY_PROVIDER = (
    provider_rows.with_generation(
        _CLASSES.c.name,
        *COLUMNS,
        _INVENTORIES.c.updated_at,
        _INVENTORIES.c.created_at,
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
        before = replaced({row[1]: usage(row) for row in provider.rows if row[1]}, class_ids)
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
