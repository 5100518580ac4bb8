"""Stored data and demands for the tests of claims."""

from typing import Any

from placement.capacity import Inventory, InventoryUsage
from placement.claims.claim import Demand

VCPU = (1, 'VCPU')


def usage(used: int = 0, total: int = 10, **fields: Any) -> InventoryUsage:
    return InventoryUsage(0, Inventory(total, **fields), used)


def demand(amount: int) -> Demand:
    return Demand('c', 1, 'p', 'VCPU', amount)
