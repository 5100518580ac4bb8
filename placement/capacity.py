"""The capacity of an inventory and the rules for amounts. Pure: no database, no HTTP.

Every other module calls these functions; `db.clauses` states the same rules in SQL.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement import exception

# The largest signed 32-bit integer, which is what an INTEGER column stores.
MAX_INT = 2147483647


def capacity_of(total: int, reserved: int, allocation_ratio: float) -> float:
    """Return the exact capacity in units of the resource class; responses show it truncated."""
    return (total - reserved) * allocation_ratio


def fits(amount: int, used: int, capacity: float) -> bool:
    """Return whether an amount can be allocated in addition to what is already in use."""
    return used + amount <= capacity


def unit_violation(amount: int, min_unit: int, max_unit: int, step_size: int) -> str | None:
    """Return the name of the first limit that an amount for one consumer violates.

    :returns: 'min_unit', 'max_unit' or 'step_size', the attributes of `Inventory`; None if the
        amount satisfies all three limits
    """
    if amount < min_unit:
        return 'min_unit'
    if amount > max_unit:
        return 'max_unit'
    if amount % step_size:
        return 'step_size'
    return None


@dataclass(frozen=True, slots=True)
class Inventory:
    """One inventory as clients write it: amounts in units of the resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> float:
        """The exact capacity in units of the resource class."""
        return capacity_of(self.total, self.reserved, self.allocation_ratio)


@dataclass(frozen=True, slots=True)
class InventoryUsage:
    """A stored inventory with the sum of the allocations against it."""

    resource_class_id: int
    inventory: Inventory
    used: int


# The id of a provider and the name of a resource class.
InventoryKey = tuple[int, str]


def allows_reservation(inventory: Inventory, may_reserve_all: bool) -> bool:
    """Return whether the reserved amount of an inventory is valid in a microversion.

    :param may_reserve_all: whether the capacity, truncated, may be zero (from microversion 1.26)
    """
    capacity = int(inventory.capacity)
    return capacity >= 0 if may_reserve_all else capacity > 0


@dataclass(frozen=True, slots=True)
class Demand:
    """What one consumer asks of one provider and class."""

    provider_id: int
    provider_uuid: str
    resource_class: str
    amount: int


def judge(
    demands: Iterable[Demand],
    holdings: Mapping[InventoryKey, InventoryUsage],
    released: Mapping[InventoryKey, int],
) -> None:
    """Decide whether all demands together can be granted.

    A provider that holds more than its capacity already may be written again with the same
    or less.

    :param demands: the new amounts of all consumers of the request
    :param holdings: the inventories, with their usage before the request
    :param released: what the consumers of the request held before, and give back
    :raises exception.InvalidAllocation: the first demand that cannot be granted
    """
    wanted: dict[InventoryKey, int] = {}
    for demand in demands:
        spot = demand.provider_id, demand.resource_class
        holding = holdings.get(spot)
        if holding is None:
            raise _refusal(demand, 'does not exist.')
        _judge_unit(demand, holding.inventory)
        wanted[spot] = wanted.get(spot, 0) + demand.amount
        before = holding.used
        after = before - released.get(spot, 0) + wanted[spot]
        if after > holding.inventory.capacity and after > before:
            raise _refusal(
                demand,
                f'has no room: {after} would be used of a capacity of '
                f'{int(holding.inventory.capacity)}.',
            )


def _judge_unit(demand: Demand, record: Inventory) -> None:
    if demand.amount < record.min_unit:
        raise _refusal(demand, f'is not given in amounts below its min_unit {record.min_unit}.')
    if demand.amount > record.max_unit:
        raise _refusal(demand, f'is not given in amounts above its max_unit {record.max_unit}.')
    if demand.amount % record.step_size:
        raise _refusal(demand, f'is given in multiples of its step_size {record.step_size}.')


def _refusal(demand: Demand, reason: str) -> exception.InvalidAllocation:
    return exception.InvalidAllocation(demand.resource_class, demand.provider_uuid, reason)
