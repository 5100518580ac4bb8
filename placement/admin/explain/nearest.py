"""Finds the trees in which the fewest conditions fail on their own, and the reasons."""

from collections.abc import Collection, Iterable, Mapping

from placement import capacity
from placement.admin.explain import provider_kinds
from placement.admin.explain.checks import Failures
from placement.admin.explain.conditions import Condition, Kind
from placement.admin.explain.patterns import AnchorPattern
from placement.candidates import model

# Provider id -> name.
Names = Mapping[int, str]


def nearest_roots(by_failures: Mapping[Failures, Iterable[AnchorPattern]], count: int) -> list[int]:
    """Return the roots of the trees with the fewest failures.

    :returns: at least `count` root ids, if there are as many. All trees with as many failures as
        one of them are included, so that the caller can sort them by name
    """
    roots: dict[int, list[int]] = {}
    for failures, of_failures in by_failures.items():
        for pattern in of_failures:
            roots.setdefault(failures.alone.bit_count(), []).extend(pattern.root_ids)
    found: list[int] = []
    for number in sorted(roots):
        if len(found) >= count:
            break
        found += roots[number]
    return found


def fact(
    condition: Condition, class_ids: Mapping[str, int], anchor: model.Anchor, names: Names
) -> str:
    """Return why no provider in reach satisfies a condition."""
    if condition.kind is Kind.RESOURCES:
        return _amount(condition, class_ids[condition.name], anchor, names)
    listed = ', '.join(sorted(condition.names))
    one, several = _TEXTS[condition.kind]
    return (one if len(condition.names) == 1 else several).format(listed)


# Kind -> the text for one name, and the text for several names.
_TEXTS = {
    Kind.REQUIRED: ('lacks {}', 'has none of {}'),
    Kind.FORBIDDEN: ('has the forbidden trait {}', ''),
    Kind.MEMBER_OF: ('is not in the aggregate {}', 'is in none of the aggregates {}'),
    Kind.FORBIDDEN_AGGREGATES: (
        'is in the forbidden aggregate {}',
        'is in one of the forbidden aggregates {}',
    ),
    Kind.IN_TREE: ('is not the tree of {}', ''),
    Kind.ROOT_REQUIRED: ('the root lacks {}', ''),
    Kind.ROOT_FORBIDDEN: ('the root has the forbidden trait {}', ''),
}


def _amount(condition: Condition, class_id: int, anchor: model.Anchor, names: Names) -> str:
    """Return why no provider can allocate the amount, for the provider that comes closest."""
    name, amount = condition.name, condition.amount
    able = [provider for provider in anchor.providers if class_id in provider.inventories]
    if not able:
        return f'has no inventory of {name}'
    # If several providers come closest, the first one by name, whatever the order of the rows is.
    able.sort(key=lambda provider: names[provider.id])
    best = max(able, key=lambda provider: _closeness(provider.inventories[class_id], amount))
    inventory = best.inventories[class_id]
    where = '' if best.id == anchor.root.id else f' on {names[best.id]}'
    passed = provider_kinds.passed_checks(inventory, amount)
    if passed == provider_kinds.UNITS:
        limit = capacity.unit_violation(
            amount, inventory.min_unit, inventory.max_unit, inventory.step_size
        )
        return f'{name} {limit} {getattr(inventory, str(limit))}{where}, {amount} requested'
    if passed == provider_kinds.EMPTY_CAPACITY:
        return f'{name} capacity {int(inventory.capacity)}{where}, {amount} requested'
    return f'{name} {inventory.used} of {int(inventory.capacity)} used{where}, {amount} requested'


def _closeness(inventory: model.ProviderInventory, amount: int) -> tuple[int, int]:
    return provider_kinds.passed_checks(inventory, amount), inventory.free


def provider_ids(anchors: Collection[model.Anchor]) -> set[int]:
    """Return the ids of all providers of these anchors."""
    return {provider.id for anchor in anchors for provider in anchor.providers}
