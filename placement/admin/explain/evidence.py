"""Counts where providers and trees are lost, and finds the trees in which the fewest are."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
import functools
from typing import Any

from placement import capacity
from placement.admin.explain import conditions
from placement.admin.explain.conditions import Condition
from placement.admin.explain.search import Check, Failures, Relaxation, Search, check_of
from placement.candidates import eligibility, model

# The checks of a group, in the order of the funnel. The first ones are those of one amount.
CHECKS = ('inventory', 'units', 'capacity', 'free_capacity', 'in_tree', 'aggregates', 'traits')
# The number of checks that an amount passes if the named one fails.
_UNITS, _CAPACITY, _FREE_CAPACITY, _ALL = range(1, 5)

# A part of the JSON document.
Json = dict[str, Any]
# Provider id -> name.
Names = Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Lack:
    """A host that would have candidates with so much more free capacity of one class."""

    host: str
    class_name: str
    amount: int


# The funnel -------------------------------------------------------------------


def of_groups(
    query: model.Query[int], names: model.Query[str], anchors: Iterable[model.Anchor]
) -> Iterator[Json]:
    """Yield how many providers of the cloud remain after each check of a request group.

    The unsuffixed group has a funnel for each class.

    :param names: the same query with names
    """
    for group, named in zip(query.groups, names.groups, strict=True):
        parts = [(group.amounts, named.amounts)]
        if not group.suffix:
            pairs = zip(group.amounts, named.amounts, strict=True)
            parts = [((one,), (name,)) for one, name in pairs]
        for amounts, resources in parts:
            remaining = _remaining(replace(group, amounts=amounts), anchors)
            yield {'group': group.suffix, 'resources': dict(resources), 'providers': remaining}


def _remaining(group: model.Group[int], anchors: Iterable[model.Anchor]) -> dict[str, int]:
    """Return the number of providers that remain after each of `CHECKS`, in their order."""
    remaining = dict.fromkeys(CHECKS, 0)
    checks = dict(zip(CHECKS, _checks(group), strict=True))
    for anchor in anchors:
        left = {provider.id for provider in anchor.tree}
        for name, check in checks.items():
            left &= {provider.id for provider in check(anchor)}
            if not left:
                break
            remaining[name] += len(left)
    return remaining


def _checks(group: model.Group[int]) -> Iterator[Check]:
    for number in range(1, _ALL + 1):
        yield functools.partial(_passing, group, number)
    only: model.Group[int] = model.Group(group.suffix)
    yield check_of(replace(only, in_tree=group.in_tree))
    yield check_of(
        replace(only, member_of=group.member_of, forbidden_aggregates=group.forbidden_aggregates)
    )
    yield check_of(replace(only, required=group.required, forbidden=group.forbidden))


def _passing(
    group: model.Group[int], number: int, anchor: model.Anchor
) -> Iterator[model.Provider]:
    """Yield the providers that pass this number of checks of all amounts."""
    for provider in anchor.tree:
        if all(_passed(provider, *amount) >= number for amount in group.amounts):
            yield provider


def _passed(provider: model.Provider, class_id: int, amount: int) -> int:
    """Return how many of the checks of an amount are passed, in the order of `CHECKS`."""
    inventory = provider.inventories.get(class_id)
    if inventory is None:
        return 0
    _, _, _, min_unit, max_unit, step_size, _, used = inventory
    if capacity.unit_violation(amount, min_unit, max_unit, step_size):
        return _UNITS
    if not capacity.fits(amount, 0, inventory.capacity):
        return _CAPACITY
    if not capacity.fits(amount, used, inventory.capacity):
        return _FREE_CAPACITY
    return _ALL


def of_roots(query: model.Query[int], search: Search, candidates: Json) -> Json:
    """Return how many roots remain after each check.

    :param candidates: the trees that have candidates
    """
    total = permitted = served = 0
    for failures, anchors in search.failures.items():
        count = sum(eligibility.is_anchor(anchor.root, query) for anchor in anchors)
        total += len(anchors)
        permitted += count
        served += count if failures.allow(0) else 0
    return {
        'all': total,
        'root_required': permitted,
        'every_group_served': served,
        'candidates': candidates,
    }


def by_condition(search: Search) -> Iterator[tuple[str, int]]:
    """Yield each key, and how many roots satisfy this condition alone, and those before it."""
    for number, condition in enumerate(search.conditions, 1):
        mask = (1 << number) - 1
        left = (
            anchors for failures, anchors in search.failures.items() if not failures.alone & mask
        )
        yield condition.key, sum(map(len, left))


# The nearest trees ------------------------------------------------------------


def nearest(search: Search, count: int, names: Names) -> list[tuple[Failures, model.Anchor]]:
    """Return the trees in which the fewest conditions fail alone, sorted by their number and name.

    :returns: at least `count` trees, if there are as many. All trees with as many failures as one
        of them are included
    """
    near = sorted(
        (failures.alone.bit_count(), names[one.root.id], one.root.id, failures, one)
        for failures, anchors in search.failures.items()
        for one in anchors
    )
    most = max((number for number, *_ in near[:count]), default=-1)
    return [(failures, anchor) for number, *_, failures, anchor in near if number <= most]


def near_tree(search: Search, failures: Failures, anchor: model.Anchor, names: Names) -> Json:
    """Return a tree, and why conditions fail in it on their own."""
    failing = (one for n, one in enumerate(search.conditions) if failures.alone >> n & 1)
    return {
        'name': names[anchor.root.id],
        'uuid': anchor.root.uuid,
        'failures': [{'key': one.key, 'fact': _fact(one, anchor, names)} for one in failing],
    }


# Kind -> the text for one name, and the text for several names.
_TEXTS = {
    conditions.REQUIRED: ('lacks {}', 'has none of {}'),
    conditions.FORBIDDEN: ('has the forbidden trait {}', ''),
    conditions.MEMBER_OF: ('is not in the aggregate {}', 'is in none of the aggregates {}'),
    conditions.FORBIDDEN_AGGREGATES: (
        'is in the forbidden aggregate {}',
        'is in one of the forbidden aggregates {}',
    ),
    conditions.IN_TREE: ('is not the tree of {}', ''),
    conditions.ROOT_REQUIRED: ('the root lacks {}', ''),
    conditions.ROOT_FORBIDDEN: ('the root has the forbidden trait {}', ''),
}


def _fact(condition: Condition, anchor: model.Anchor, names: Names) -> str:
    if condition.kind == conditions.RESOURCES:
        text = _amount(condition, anchor, names)
    else:
        one, several = _TEXTS[condition.kind]
        text = (several if len(condition.names) > 1 else one).format(', '.join(condition.names))
    return f'{text} (group {condition.suffix})' if condition.suffix else text


def _amount(condition: Condition, anchor: model.Anchor, names: Names) -> str:
    """Return why no provider can allocate the amount, for the provider that comes closest."""
    (name,), (class_id, amount) = condition.names, condition.amount
    best = _closest(anchor, class_id, amount, names)
    if best is None:
        return f'has no inventory of {name}'
    inventory = best.inventories[class_id]
    where = '' if best.id == anchor.root.id else f' on {names[best.id]}'
    passed = _passed(best, class_id, amount)
    if passed == _UNITS:
        limit = capacity.unit_violation(
            amount, inventory.min_unit, inventory.max_unit, inventory.step_size
        )
        return f'{name} {limit} {getattr(inventory, str(limit))}{where}, {amount} requested'
    if passed == _CAPACITY:
        return f'{name} capacity {int(inventory.capacity)}{where}, {amount} requested'
    return f'{name} {inventory.used} of {int(inventory.capacity)} used{where}, {amount} requested'


def _closest(
    anchor: model.Anchor, class_id: int, amount: int, names: Names
) -> model.Provider | None:
    """Return the provider that comes closest to an amount; None without an inventory."""
    able = [provider for provider in anchor.providers if class_id in provider.inventories]
    # If several providers come closest, the first one by name, whatever the order of the rows is.
    able.sort(key=lambda provider: names[provider.id])
    return max(
        able,
        key=lambda one: (_passed(one, class_id, amount), one.inventories[class_id].free),
        default=None,
    )


def smallest_lack(
    relaxations: Iterable[Relaxation], anchors: Mapping[int, model.Anchor], names: Names
) -> Lack | None:
    """Return the host that lacks the smallest part of an amount, and nothing else.

    :param anchors: root id -> anchor
    """
    lacks: list[tuple[float, Lack]] = []
    for relaxation in relaxations:
        condition = relaxation.without[0]
        if len(relaxation.without) > 1 or condition.kind != conditions.RESOURCES:
            continue
        class_id, amount = condition.amount
        for root_id in relaxation.trees.roots:
            best = _closest(anchors[root_id], class_id, amount, names)
            if best and _passed(best, class_id, amount) == _FREE_CAPACITY:
                inventory = best.inventories[class_id]
                lack = amount - capacity.free(inventory.used, inventory.capacity)
                lacks.append((lack / amount, Lack(names[root_id], condition.names[0], lack)))
    # Of several hosts, the first one by name.
    return min(lacks, key=lambda one: (one[0], one[1].host))[1] if lacks else None


def equal_hosts(anchors: Iterable[model.Anchor], names: Names) -> list[list[str]]:
    """Return the names of the roots, in a list for each kind of host.

    Hosts of one kind have the same inventories, whatever their usage is.
    """
    kinds: dict[object, list[str]] = {}
    for anchor in sorted(anchors, key=lambda anchor: names[anchor.root.id]):
        inventories = (one[:-1] for p in anchor.tree for one in p.inventories.values())
        kinds.setdefault(tuple(sorted(inventories)), []).append(names[anchor.root.id])
    return list(kinds.values())
