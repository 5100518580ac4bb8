"""Stored data and demands for the tests of claims."""

from collections.abc import Mapping
from typing import Any

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.claims.claim import Demand, LockedClaims, Owners
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
    demands: list[Demand] | None = None,
    released: Mapping[InventoryKey, int] | None = None,
    missing: tuple[str, ...] = (),
) -> LockedClaims:
    return LockedClaims(
        claims=(),
        consumers={},
        owners=Owners({}, {}, {}),
        allocations=(),
        providers={provider.uuid: provider for provider in (PROVIDER, OTHER)},
        missing_providers=frozenset(missing),
        demands=demands or [],
        released=released or {},
        provider_ids_of_deleted_consumers=frozenset(),
    )
