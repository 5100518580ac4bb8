"""Stored data and demands for the tests of claims."""

from collections.abc import Mapping, Sequence
from typing import Any

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.claims.claim import Demand, LockedClaims, Provider
from placement.objects.provider_rows import Locked

PROVIDER = Locked(id=1, uuid='p', generation=5, root_id=1, parent_id=None)
OTHER = Locked(id=2, uuid='o', generation=7, root_id=2, parent_id=None)
VCPU = (PROVIDER.id, 'VCPU')
CLASS_IDS = {'VCPU': 0, 'MEMORY_MB': 1}


def usage(used: int = 0, total: int = 10, **fields: Any) -> InventoryUsage:
    return InventoryUsage(CLASS_IDS['VCPU'], Inventory(total, **fields), used)


def demand(amount: int, provider: Locked = PROVIDER) -> Demand:
    return Demand('c', provider.id, provider.uuid, 'VCPU', amount)


def locked_claims(
    demands: Sequence[Demand] = (),
    released: Mapping[InventoryKey, int] | None = None,
    inventories: Mapping[InventoryKey, InventoryUsage] | None = None,
) -> LockedClaims:
    return LockedClaims(
        claims=(),
        consumers={},
        new_owners={},
        allocations=(),
        providers={one.uuid: Provider(one.id, one.uuid) for one in (PROVIDER, OTHER)},
        inventories=inventories or {},
        class_ids=CLASS_IDS,
        demands=demands,
        released=released or {},
    )
