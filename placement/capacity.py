"""The capacity of an inventory, and the rules for allocated amounts.

The functions use neither the database nor HTTP. `db.expressions` has the same rules as SQL
expressions. `candidates.eligibility.can_allocate` has a faster copy; a test compares both.
"""

from dataclasses import dataclass

# The largest signed 32-bit integer, which is the largest value of an INTEGER column.
MAX_INT = 2147483647


def capacity_of(total: int, reserved: int, allocation_ratio: float) -> float:
    """Return the capacity in units of the resource class, without rounding."""
    return (total - reserved) * allocation_ratio


def fits(amount: int, used: int, capacity: float) -> bool:
    """Return whether an amount can be allocated in addition to the current usage."""
    return used + amount <= capacity


def free(used: int, capacity: float) -> int:
    """Return the largest amount that `fits` accepts; not positive if it accepts no amount."""
    return int(capacity) - used


def unit_violation(amount: int, min_unit: int, max_unit: int, step_size: int) -> str | None:
    """Return the name of the first limit that the amount of one allocation violates.

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
    """The inventory of one resource class, with all amounts in units of the class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> float:
        """The capacity in units of the resource class, without rounding."""
        return capacity_of(self.total, self.reserved, self.allocation_ratio)


@dataclass(frozen=True, slots=True)
class InventoryUsage:
    """An inventory, and the sum of the allocations against it."""

    resource_class_id: int
    inventory: Inventory
    used: int


# An inventory is identified by the id of its provider and the name of its resource class.
InventoryKey = tuple[int, str]


def allows_reservation(inventory: Inventory, may_reserve_all: bool) -> bool:
    """Return whether the reserved amount of an inventory is valid.

    :param may_reserve_all: whether the capacity, truncated to an integer, may be zero (from
        microversion 1.26)
    """
    capacity = int(inventory.capacity)
    return capacity >= 0 if may_reserve_all else capacity > 0
