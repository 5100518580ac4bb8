"""Compute the changes of the inventories of a provider, without access to the database."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.capacity import Inventory, InventoryUsage


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
