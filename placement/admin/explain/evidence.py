"""Counts where providers and trees are lost, and finds the trees in which the fewest are."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
import itertools

from placement import capacity
from placement.admin.explain.conditions import Condition, Kind
from placement.admin.explain.search import Failures, Relaxation, Search, Trees
from placement.candidates import eligibility, model

# The checks of a group, in the order of the funnel. The first ones are those of one amount.
CHECKS = ('inventory', 'units', 'capacity', 'free_capacity', 'in_tree', 'aggregates', 'traits')
# The number of checks that an amount passes if the named one fails.
_UNITS, _CAPACITY, _FREE_CAPACITY, _ALL = range(1, 5)

# Provider id -> name.
Names = Mapping[int, str]


@dataclass(frozen=True, slots=True)
class GroupFunnel:
    """How many providers of the cloud remain after each check of a request group.

    :ivar group: the suffix of the group
    :ivar resources: resource class -> requested amount. The unsuffixed group has a funnel for each
        class
    :ivar providers: name of the check -> the number of providers that remain, in the order of the
        checks
    """

    group: str
    resources: Mapping[str, int]
    providers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RootFunnel:
    """How many roots remain after each check.

    :ivar total: all roots
    :ivar root_required: the roots that satisfy root_required
    :ivar served: those in whose reach every group has a provider that could serve it
    :ivar candidates: those with candidates
    :ivar by_condition: the key of each condition, and the roots in whose reach some provider
        satisfies it alone, and those before it
    """

    total: int
    root_required: int
    served: int
    candidates: Trees
    by_condition: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """Why a condition fails in a tree.

    :ivar key: the key of the condition
    :ivar fact: the reason, with names and numbers
    """

    key: str
    fact: str


@dataclass(frozen=True, slots=True)
class Lack:
    """A host that would have candidates with so much more free capacity of one class."""

    host: str
    class_name: str
    amount: int


# The funnel -------------------------------------------------------------------


def of_groups(
    query: model.Query[int], names: model.Query[str], anchors: Iterable[model.Anchor]
) -> tuple[GroupFunnel, ...]:
    """Return the funnel of each suffixed group, and of each class of the unsuffixed group.

    :param names: the same query with names
    """
    anchors = list(anchors)
    return tuple(
        GroupFunnel(part.suffix, amounts, _remaining(part, anchors))
        for group, named in zip(query.groups, names.groups, strict=True)
        for part, amounts in _parts(group, named)
    )


def of_roots(query: model.Query[int], search: Search, candidates: Trees) -> RootFunnel:
    """Return how many roots remain after each check.

    :param candidates: the trees that have candidates
    """
    total = permitted = served = 0
    # Number of the first condition that fails alone -> the number of roots.
    lost: Counter[int] = Counter()
    for failures, anchors in search.failures.items():
        total += len(anchors)
        lost[(failures.alone & -failures.alone).bit_length() - 1] += len(anchors)
        count = sum(eligibility.is_anchor(anchor.root, query) for anchor in anchors)
        permitted += count
        served += count if failures.allow(0) else 0
    losses = itertools.accumulate(lost[number] for number in range(len(search.conditions)))
    by_condition = tuple(
        (condition.key, total - loss)
        for condition, loss in zip(search.conditions, losses, strict=True)
    )
    return RootFunnel(total, permitted, served, candidates, by_condition)


def _parts(
    group: model.Group[int], named: model.Group[str]
) -> Iterator[tuple[model.Group[int], dict[str, int]]]:
    """Yield a group, or the unsuffixed group with each of its classes, with its named amounts."""
    if group.suffix:
        yield group, dict(named.amounts)
        return
    for amount, name in zip(group.amounts, named.amounts, strict=True):
        yield replace(group, amounts=(amount,)), dict([name])


def _remaining(group: model.Group[int], anchors: Iterable[model.Anchor]) -> dict[str, int]:
    others = _checks(group)
    passed: Counter[int] = Counter()
    for anchor in anchors:
        for provider in anchor.tree:
            count = min((_passed(provider, *amount) for amount in group.amounts), default=_ALL)
            if count == _ALL:
                tests = (check(provider, anchor.root) for check in others)
                count += sum(1 for _ in itertools.takewhile(bool, tests))
            passed[count] += 1
    return {
        name: sum(passed[count] for count in range(number, len(CHECKS) + 1))
        for number, name in enumerate(CHECKS, 1)
    }


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


_Check = Callable[[model.Provider, model.Provider], bool]


def _checks(group: model.Group[int]) -> tuple[_Check, ...]:
    """Return a function for each of the last `CHECKS`, which receives a provider and its root."""
    only: model.Group[int] = model.Group(group.suffix)
    aggregates = replace(
        only, member_of=group.member_of, forbidden_aggregates=group.forbidden_aggregates
    )
    return (
        _satisfies(replace(only, in_tree=group.in_tree)),
        _satisfies(aggregates),
        _satisfies(replace(only, required=group.required, forbidden=group.forbidden)),
    )


def _satisfies(group: model.Group[int]) -> _Check:
    """Return the check of a group without amounts.

    The required traits of the unsuffixed group apply to all of its providers together, so they are
    not checked for a single provider.
    """
    if not group.suffix:
        return lambda provider, root: bool(
            eligibility.permitted_providers(group, model.Anchor(root, (provider,)))
        )
    slot = model.Slot(group, ())
    return lambda provider, _root: eligibility.satisfies_suffixed_group(provider, slot)


# The nearest trees ------------------------------------------------------------


def nearest(search: Search, count: int, names: Names) -> list[tuple[Failures, model.Anchor]]:
    """Return the trees in which the fewest conditions fail alone, sorted by their number and name.

    :returns: at least `count` trees, if there are as many. All trees with as many failures as one
        of them are included
    """
    by_number: dict[int, list[tuple[str, int, Failures, model.Anchor]]] = {}
    for failures, anchors in search.failures.items():
        near = by_number.setdefault(failures.alone.bit_count(), [])
        near += ((names[one.root.id], one.root.id, failures, one) for one in anchors)
    found: list[tuple[Failures, model.Anchor]] = []
    for number in sorted(by_number):
        if len(found) >= count:
            break
        found += ((failures, anchor) for _, _, failures, anchor in sorted(by_number[number]))
    return found


def facts(
    search: Search, failures: Failures, anchor: model.Anchor, names: Names
) -> tuple[Fact, ...]:
    """Return the conditions that no provider in reach satisfies, with the reasons."""
    return tuple(
        Fact(condition.key, _fact(condition, search.ids.classes, anchor, names))
        for number, condition in enumerate(search.conditions)
        if failures.alone >> number & 1
    )


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


def _fact(
    condition: Condition, class_ids: Mapping[str, int], anchor: model.Anchor, names: Names
) -> str:
    if condition.kind is Kind.RESOURCES:
        text = _amount(condition, class_ids, anchor, names)
    else:
        # The value of a key; only that of in_tree is not in the key.
        value = condition.key.partition(':')[2].removeprefix('!').removeprefix('in:')
        listed = value or str(condition.part.groups[0].in_tree)
        one, several = _TEXTS[condition.kind]
        text = (several if ',' in listed else one).format(listed.replace(',', ', '))
    return f'{text} (group {condition.suffix})' if condition.suffix else text


def _amount(
    condition: Condition, class_ids: Mapping[str, int], anchor: model.Anchor, names: Names
) -> str:
    """Return why no provider can allocate the amount, for the provider that comes closest."""
    name, amount = condition.amount
    class_id = class_ids[name]
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
    search: Search,
    relaxations: Iterable[Relaxation],
    anchors: Mapping[int, model.Anchor],
    names: Names,
) -> Lack | None:
    """Return the host that lacks the smallest part of an amount, and nothing else.

    :param anchors: root id -> anchor
    """
    lacks: list[tuple[float, str, Lack]] = []
    for relaxation in relaxations:
        condition = relaxation.without[0]
        if len(relaxation.without) > 1 or condition.kind is not Kind.RESOURCES:
            continue
        name, amount = condition.amount
        class_id = search.ids.classes[name]
        for root_id in relaxation.trees.roots:
            best = _closest(anchors[root_id], class_id, amount, names)
            if best and _passed(best, class_id, amount) == _FREE_CAPACITY:
                inventory = best.inventories[class_id]
                lack = amount - capacity.free(inventory.used, inventory.capacity)
                host = names[root_id]
                lacks.append((lack / amount, host, Lack(host, name, lack)))
    return min(lacks, key=lambda one: one[:2])[2] if lacks else None


def equal_hosts(
    anchors: Iterable[model.Anchor], class_ids: Collection[int], names: Names
) -> list[list[str]]:
    """Return the names of the roots, in a list for each kind of host.

    Hosts of one kind have the same inventories of these classes, whatever their usage is.
    """
    kinds: dict[object, list[str]] = {}
    for anchor in sorted(anchors, key=lambda anchor: names[anchor.root.id]):
        inventories = (
            inventory[:-1]
            for provider in anchor.tree
            for class_id, inventory in provider.inventories.items()
            if class_id in class_ids
        )
        kinds.setdefault(tuple(sorted(inventories)), []).append(names[anchor.root.id])
    return list(kinds.values())
