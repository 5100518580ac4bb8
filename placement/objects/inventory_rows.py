"""Read inventories with their usage, and write the changes in an `inventory_plan.Plan`.

The caller has locked the providers in the same transaction. The number of statements does not
depend on the number of providers and resource classes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.db import capacity_sql
from placement.db.sqlalchemy import models
from placement.objects.inventory_plan import Plan

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
_WITH_USAGE = (
    sa.select(
        _INVENTORIES.c.resource_provider_id,
        _CLASSES.c.name,
        _INVENTORIES.c.resource_class_id,
        *COLUMNS,
        capacity_sql.used(_INVENTORIES).label('used'),
    )
    .select_from(_INVENTORIES)
    .join(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
    .where(_INVENTORIES.c.resource_provider_id.in_(sa.bindparam('provider_ids', expanding=True)))
)
_WITH_USAGE_OF_CLASSES = _WITH_USAGE.where(
    _CLASSES.c.name.in_(sa.bindparam('names', expanding=True))
)


def read_with_usage(
    conn: sa.Connection, provider_ids: Iterable[int], class_names: Iterable[str] | None = None
) -> dict[InventoryKey, InventoryUsage]:
    """Return the inventories of providers, with their usage.

    :param class_names: the resource classes to read; None reads all classes
    """
    parameters: dict[str, Any] = {'provider_ids': sorted(provider_ids)}
    statement = _WITH_USAGE
    if class_names is not None:
        parameters['names'] = sorted(class_names)
        statement = _WITH_USAGE_OF_CLASSES
    return {
        (row[0], row[1]): InventoryUsage(row[2], Inventory(*row[3:9]), int(row[9]))
        for row in conn.execute(statement, parameters)
    }


def apply_plans(
    conn: sa.Connection, plans: Mapping[int, Plan], class_ids: Mapping[str, int]
) -> None:
    """Write changes of inventories, with at most one DELETE, one INSERT and one UPDATE.

    :param plans: the changes of each provider, keyed by provider id
    :param class_ids: the id of each resource class in the plans, keyed by class name
    """
    _delete(conn, [(pid, class_ids[name]) for pid, plan in plans.items() for name in plan.remove])
    rows = [
        {'resource_provider_id': pid, 'resource_class_id': class_ids[name], **asdict(inventory)}
        for pid, plan in sorted(plans.items())
        for name, inventory in sorted(plan.add.items())
    ]
    if rows:
        conn.execute(sa.insert(_INVENTORIES), rows)
    _update(
        conn,
        {
            (pid, class_ids[name]): inventory
            for pid, plan in plans.items()
            for name, inventory in plan.change.items()
        },
    )


def _delete(conn: sa.Connection, keys: list[tuple[int, int]]) -> None:
    if keys:
        conn.execute(sa.delete(_INVENTORIES).where(_has_key(keys)))


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
