"""Clouds for tests of reports, without a database."""

import datetime
from typing import Any
import uuid

from placement.admin.drain.report import Drain, Tree
from placement.admin.report.model import Cloud, Origin, ProjectUsage
from placement.candidates.model import Provider, ProviderInventory

VCPU, MEMORY_MB, DISK_GB, UNKNOWN = 0, 1, 2, 77
CLASSES = {VCPU: 'VCPU', MEMORY_MB: 'MEMORY_MB', DISK_GB: 'DISK_GB'}
SHARING, FAST, DISABLED = 1, 2, 3
TRAITS = {
    SHARING: 'MISC_SHARES_VIA_AGGREGATE',
    FAST: 'CUSTOM_FAST',
    DISABLED: 'COMPUTE_STATUS_DISABLED',
}
ORIGIN = Origin(
    time=datetime.datetime(2026, 11, 22, 12, 30, tzinfo=datetime.UTC),
    database='sqlite:////var/lib/placement.db',
    schema='a082b8bb98d0',
    version='17.0.0',
)


def inventory(
    class_id: int, total: int, used: int = 0, reserved: int = 0, ratio: float = 1.0
) -> ProviderInventory:
    """Return an inventory."""
    return ProviderInventory(class_id, total, reserved, 1, total, 1, ratio, used)


def provider(
    id_: int,
    *inventories: ProviderInventory,
    root: int | None = None,
    parent: int | None = None,
    traits: tuple[int, ...] = (),
    aggregates: tuple[int, ...] = (),
) -> Provider:
    """Return a provider; by default, it is a root."""
    return Provider(
        id_,
        str(uuid.UUID(int=id_)),
        id_ if root is None else root,
        parent,
        frozenset(traits),
        frozenset(aggregates),
        {one.class_id: one for one in inventories},
    )


def _drain(number: int, verdict: str, **missing: int) -> tuple[str, Drain]:
    root = str(uuid.UUID(int=number))
    placed = 5 if verdict == 'fits' else 3
    return root, Drain([Tree(root, 'name')], verdict, None, 5, placed, missing, [])


# What `drain --each` finds out about three trees with allocations.
DRAINS = dict(
    [
        _drain(1, 'fits'),
        _drain(2, 'impossible', VCPU=24, DISK_GB=10),
        _drain(3, 'not found', VCPU=1),
    ]
)


def cloud(
    *providers: Provider,
    names: dict[int, str] | None = None,
    projects: tuple[tuple[str, int, int], ...] = (),
    **more: Any,
) -> Cloud:
    """Return a cloud.

    :param names: the names of some providers; the others are `provider-ID`
    :param projects: the name, the class, and the usage of projects, each with one consumer
    """
    values: dict[str, Any] = {
        'providers': providers,
        'names': {one.id: f'provider-{one.id}' for one in providers} | (names or {}),
        'generations': {one.id: 3 for one in providers},
        'classes': CLASSES,
        'traits': TRAITS,
        'aggregates': {number: f'aggregate-{number}' for number in range(10)},
        'sharing_trait': SHARING,
        'disabled_trait': DISABLED,
        'projects': [ProjectUsage(*one) for one in projects],
        'project_consumers': {name: 1 for name, _, _ in projects},
    }
    return Cloud(**(values | more))
