"""Read inventories with their usage, plan their changes, and write the changes.

Before a change is written, the caller locks the providers in the same transaction. The number of
statements does not depend on the number of providers and resource classes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import provider_rows

_PROVIDERS = models.resource_providers
_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
# The columns are in the order of the fields of `Inventory`.
COLUMNS = (
    _INVENTORIES.c.total,
    _INVENTORIES.c.reserved,
    _INVENTORIES.c.min_unit,
    _INVENTORIES.c.max_unit,
    _INVENTORIES.c.step_size,
    _INVENTORIES.c.allocation_ratio,
)
_FIELDS = tuple(column.name for column in COLUMNS)
_INSERT = sa.insert(_INVENTORIES)
_CLASS_TO_USED = (
    _INVENTORIES.c.resource_class_id,
    _CLASSES.c.name,
    *COLUMNS,
    expressions.used(_INVENTORIES).label('used'),
)
_WITH_USAGE = (
    sa.select(_INVENTORIES.c.resource_provider_id, *_CLASS_TO_USED)
    .select_from(_INVENTORIES)
    .join(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
    .where(_INVENTORIES.c.resource_provider_id.in_(sa.bindparam('provider_ids', expanding=True)))
)
# The inventories of a provider, and the requested classes.
OF_PROVIDER_AND_CLASSES = provider_rows.and_requested(
    provider_rows.with_generation(*_CLASS_TO_USED)
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id),
    _CLASSES.c.name,
    *(sa.null() for _ in _CLASS_TO_USED[2:]),
)


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


# Reading --------------------------------------------------------------------------


def read_with_usage(
    conn: sa.Connection, provider_ids: Iterable[int]
) -> dict[InventoryKey, InventoryUsage]:
    """Return the inventories of providers, with their usage."""
    rows = conn.execute(_WITH_USAGE, {'provider_ids': sorted(provider_ids)})
    return {(row[0], row[2]): usage(row[1:]) for row in rows}


def usage(row: Sequence[Any]) -> InventoryUsage:
    """Return the inventory in a row: class id, class name, the columns of `Inventory`, usage."""
    return InventoryUsage(row[0], Inventory(*row[2:8]), int(row[8]))


# Changing -------------------------------------------------------------------------


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


def apply_plans(
    conn: sa.Connection, plans: Mapping[int, Plan], class_ids: Mapping[str, int]
) -> None:
    """Write changes of inventories, with at most one DELETE, one INSERT and one UPDATE.

    :param plans: the changes of each provider, keyed by provider id
    :param class_ids: the id of each resource class in the plans, keyed by class name
    """
    removed = [(pid, class_ids[name]) for pid, plan in plans.items() for name in plan.remove]
    if removed:
        conn.execute(sa.delete(_INVENTORIES).where(_has_key(removed)))
    rows = [
        {'resource_provider_id': pid, 'resource_class_id': class_ids[name], **_values(inventory)}
        for pid, plan in sorted(plans.items())
        for name, inventory in sorted(plan.add.items())
    ]
    if rows:
        conn.execute(_INSERT, rows)
    _update(
        conn,
        {
            (pid, class_ids[name]): inventory
            for pid, plan in plans.items()
            for name, inventory in plan.change.items()
        },
    )


def _values(inventory: Inventory) -> dict[str, Any]:
    return {field: getattr(inventory, field) for field in _FIELDS}


def _update(conn: sa.Connection, changes: Mapping[tuple[int, int], Inventory]) -> None:
    """Update inventories.

    :param changes: the new values, keyed by provider id and class id
    """
    if not changes:
        return
    values: dict[str, Any] = {}
    for column in COLUMNS:
        new = {getattr(inventory, column.name) for inventory in changes.values()}
        if len(new) == 1:
            values[column.name] = new.pop()
            continue
        whens = [
            (_has_key([key]), sa.literal(getattr(inventory, column.name), column.type))
            for key, inventory in changes.items()
        ]
        values[column.name] = sa.case(*whens, else_=column)
    conn.execute(sa.update(_INVENTORIES).where(_has_key(changes)).values(**values))


def _has_key(keys: Iterable[tuple[int, int]]) -> sa.ColumnElement[bool]:
    """Return a condition that selects the inventories with these keys (provider id, class id)."""
    by_provider: dict[int, list[int]] = {}
    for provider_id, class_id in keys:
        by_provider.setdefault(provider_id, []).append(class_id)
    return sa.or_(
        sa.false(),
        *(
            sa.and_(
                _INVENTORIES.c.resource_provider_id == provider_id,
                _INVENTORIES.c.resource_class_id.in_(sorted(ids)),
            )
            for provider_id, ids in sorted(by_provider.items())
        ),
    )
