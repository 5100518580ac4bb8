"""Inventories: how much of a resource class a provider has, and the limits of each allocation.

Each writing function executes one transaction. It reads the inventories with their usage, checks
the request, computes the changes, writes them, and increments the provider generation.

If the request contains the provider generation, the increment follows the checks: it locks the
provider, and fails if the generation has changed since it was read. A request without the
generation locks the provider first, so that it waits for concurrent claims and does not fail.
"""

from collections.abc import Mapping
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
    Plan,
    ProviderInventories,
    apply_plans,
    plan_changes,
    read_of_provider,
    read_with_usage,
)

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

    def work(conn: sa.Connection) -> ProviderInventories:
        provider_rows.lock_one(conn, uuid)
        stored = read_of_provider(conn, uuid, [class_name])
        _check_reservations(stored.uuid, {class_name: inventory}, may_reserve_all)
        class_ids = resource_class.require([class_name], stored.class_ids)
        if class_name in stored.inventories:
            raise exception.InventoryExists(class_name, uuid)
        resource_class.touch(conn, class_ids)
        apply_plans(conn, {stored.id: plan_changes({}, {class_name: inventory})}, class_ids)
        generation.increment_providers(conn, {stored.id: stored.generation})
        return stored

    stored = engine.write(work)
    trail.log(trail.inventories, stored.uuid, stored.name, {}, {class_name: inventory})
    return stored.generation + 1


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

    def work(conn: sa.Connection) -> ProviderInventories:
        stored = read_of_provider(conn, uuid, inventories)
        generation.check_provider(stored.uuid, given_generation, stored.generation)
        _check_reservations(stored.uuid, inventories, may_reserve_all)
        class_ids = resource_class.require(inventories, stored.class_ids)
        _replace_all(conn, stored, inventories, class_ids)
        return stored

    stored = engine.write(work)
    trail.log(trail.inventories, stored.uuid, stored.name, stored.inventories, inventories)
    return stored.generation + 1


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

    def work(conn: sa.Connection) -> ProviderInventories:
        stored = read_of_provider(conn, uuid, [class_name])
        generation.check_provider(stored.uuid, given_generation, stored.generation)
        _check_reservations(stored.uuid, {class_name: inventory}, may_reserve_all)
        if class_name not in stored.class_ids:
            raise exception.ResourceClassNotFound(class_name)
        current = stored.inventories.get(class_name)
        if current is None:
            raise exception.InventoryMissingForUpdate(class_name, uuid)
        plan = plan_changes({class_name: current}, {class_name: inventory})
        generation.increment_providers(conn, {stored.id: stored.generation})
        _warn_over_capacity(uuid, plan)
        apply_plans(conn, {stored.id: plan}, stored.class_ids)
        return stored

    stored = engine.write(work)
    before = {class_name: stored.inventories[class_name]}
    trail.log(trail.inventories, stored.uuid, stored.name, before, {class_name: inventory})
    return stored.generation + 1


def delete_all(uuid: str) -> None:
    """Delete all inventories of a provider (microversion 1.5).

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryInUse: allocations exist against one of the inventories
    """

    def work(conn: sa.Connection) -> ProviderInventories:
        provider_rows.lock_one(conn, uuid)
        stored = read_of_provider(conn, uuid, [])
        _replace_all(conn, stored, {}, {})
        return stored

    stored = engine.write(work)
    trail.log(trail.inventories, stored.uuid, stored.name, stored.inventories, {})


def delete(uuid: str, class_name: str) -> None:
    """Delete a provider's inventory of one resource class.

    :raises exception.ResourceProviderNotFound:
    :raises exception.InventoryNotFound: the provider has no inventory of the class, or the class
        does not exist
    :raises exception.InventoryInUse: allocations exist against the inventory
    """

    def work(conn: sa.Connection) -> tuple[str, InventoryUsage]:
        provider = provider_rows.lock_one(conn, uuid)
        current = read_with_usage(conn, [provider.id], [class_name])
        stored = current.get((provider.id, class_name))
        if stored is None:
            raise exception.InventoryNotFound(class_name, uuid, deleting=True)
        if stored.used:
            raise exception.InventoryInUse([class_name], uuid, code=errors.CONCURRENT_UPDATE)
        plan = plan_changes({class_name: stored}, {})
        apply_plans(conn, {provider.id: plan}, {class_name: stored.resource_class_id})
        generation.increment_providers(conn, {provider.id: provider.generation})
        return provider.uuid, stored

    stored_uuid, removed = engine.write(work)
    trail.log(trail.inventories, stored_uuid, None, {class_name: removed}, {})


def _replace_all(
    conn: sa.Connection,
    stored: ProviderInventories,
    inventories: Mapping[str, Inventory],
    class_ids: Mapping[str, int],
) -> None:
    plan = plan_changes(stored.inventories, inventories)
    if plan.in_use:
        raise exception.InventoryInUse(plan.in_use, stored.uuid)
    generation.increment_providers(conn, {stored.id: stored.generation})
    _warn_over_capacity(stored.uuid, plan)
    resource_class.touch(conn, {name: class_ids[name] for name in plan.add})
    current_ids = {name: usage.resource_class_id for name, usage in stored.inventories.items()}
    apply_plans(conn, {stored.id: plan}, {**current_ids, **class_ids})


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
