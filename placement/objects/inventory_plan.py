"""Decide how the inventories of a provider change. Pure: no function reads the database."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.capacity import Inventory, InventoryUsage


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that turn the current inventories of a provider into the requested ones.

    :param add: new inventories by class name
    :param change: new values of existing inventories by class name
    :param remove: class names of inventories to delete
    :param in_use: class names in `remove` against which there are allocations
    :param over_capacity: class names whose new capacity is less than the usage, which is allowed
    """

    add: Mapping[str, Inventory]
    change: Mapping[str, Inventory]
    remove: tuple[str, ...]
    in_use: tuple[str, ...]
    over_capacity: tuple[str, ...]


def plan_changes(current: Mapping[str, InventoryUsage], requested: Mapping[str, Inventory]) -> Plan:
    """Return the changes between inventories by class name, without those that stay equal."""
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
