"""Builds SQL conditions on root providers for slots that their trees must serve together.

`prefilter` has the conditions for one slot. A query with 200 equal groups has only one kind of
slot, and nearly every tree can serve one slot of this kind. The conditions of this module skip the
trees that cannot serve all 200 slots, which the solver would otherwise have to check one by one.
As in `prefilter`, the conditions are necessary for a candidate, but not sufficient.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import itertools
from typing import Any

import sqlalchemy as sa

from placement import capacity
from placement.candidates import model, prefilter
from placement.candidates.sharing import SharingAggregates
from placement.db import capacity_sql, portable_sql, provider_conditions

# No tree has so much capacity, and drivers cannot send much larger numbers.
_MAX_TOTAL = capacity.MAX_INT**2


def combined_conditions(
    slots: Sequence[model.Slot],
    isolate: bool,
    sharing: SharingAggregates | None,
    root: prefilter.RootId,
    members_of: model.Slot | None = None,
) -> list[prefilter.Clause]:
    """Return conditions for slots that the tree must serve together; cheap conditions first.

    Without these conditions, the solver would have to check each tree in which every slot can be
    served alone. Slots that sharing providers can serve are not included.

    :param slots: all slots of the query, not only one of each kind
    :param isolate: whether different suffixed groups must use different providers
    :param members_of: the slot that selects the members in a statement that selects tree members
    """
    own = [slot for slot in slots if not (sharing and sharing.slots.get(slot))]
    counts = Counter(slot.kind for slot in own if isolate and slot.suffixed)
    conditions: list[prefilter.Clause] = []
    if len(counts) > 1:
        conditions.append(_at_least(counts.total(), prefilter.tree_providers(root)))
    repeated = {slot.kind: slot for slot in own if counts[slot.kind] > 1}
    if members_of and repeated.pop(members_of.kind, None):
        conditions.append(sa.func.count() >= counts[members_of.kind])
    conditions += [
        _at_least(counts[kind], prefilter.able_providers(slot, root))
        for kind, slot in itertools.islice(repeated.items(), prefilter.MAX_CONDITIONS)
    ]
    return conditions + [
        _tree_can_serve(class_id, total, root) for class_id, total in _totals(own, counts)
    ]


def _at_least(count: int, rows: sa.Select[Any]) -> prefilter.Clause:
    """Return the condition that a correlated SELECT returns at least this many rows."""
    return provider_conditions.has_rows(rows.offset(count - 1))


def _totals(
    slots: Iterable[model.Slot], isolated_kinds: Mapping[tuple[object, ...], int]
) -> list[tuple[int, int]]:
    """Return the classes that several slots request, and the total amount of each class.

    A class that only isolated slots of one kind request is left out: if the tree has a provider for
    each of these slots, it has enough free capacity.

    :param isolated_kinds: the kinds of the isolated slots
    """
    totals: Counter[int] = Counter()
    requests: dict[int, set[object]] = {}
    for slot in slots:
        requester = slot.kind if slot.kind in isolated_kinds else slot
        for class_id, amount in slot.amounts:
            totals[class_id] += amount
            requests.setdefault(class_id, set()).add(requester)
    return [item for item in totals.most_common() if len(requests[item[0]]) > 1][
        : prefilter.MAX_CONDITIONS
    ]


def _tree_can_serve(class_id: int, total: int, root: prefilter.RootId) -> prefilter.Clause:
    """Return the condition that the providers of the tree can serve a total amount of a class."""
    if total > _MAX_TOTAL:
        return sa.false()
    inventory = prefilter.inventory_alias(0)
    largest = (
        sa.select(sa.func.sum(capacity_sql.largest_amount(inventory)))
        .select_from(prefilter.TREE_PROVIDERS)
        .join(inventory, inventory.c.resource_provider_id == prefilter.TREE_PROVIDERS.c.id)
        .where(
            prefilter.TREE_PROVIDERS.c.root_provider_id == root,
            portable_sql.WithoutIndex(inventory.c.resource_class_id) == class_id,
        )
        .correlate(prefilter.ROOTS, prefilter.MEMBERS)
    )
    return sa.func.coalesce(largest.scalar_subquery(), 0) >= total * capacity_sql.TOLERANCE
