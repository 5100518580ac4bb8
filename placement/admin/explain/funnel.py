"""Counts the providers and the roots that remain after each check of a query."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
import itertools

from placement.admin.explain import provider_kinds
from placement.admin.explain.checks import Failures
from placement.admin.explain.model import GroupFunnel, RootFunnel, Trees
from placement.admin.explain.patterns import AnchorPattern, ProviderPattern
from placement.candidates import eligibility, model

# The checks of a group, in their order.
CHECKS = (
    'inventory',
    'units',
    'capacity',
    'free_capacity',
    'in_tree',
    'aggregates',
    'traits',
)


def of_groups(
    query: model.Query[int],
    names: model.Query[str],
    providers: Iterable[ProviderPattern],
) -> tuple[GroupFunnel, ...]:
    """Return the funnel of each suffixed group, and of each class of the unsuffixed group.

    :param names: the same query with names
    """
    providers = list(providers)
    funnels = []
    for group, named in zip(query.groups, names.groups, strict=True):
        parts = zip(group.amounts, named.amounts, strict=True)
        if group.suffix:
            funnels.append(_funnel(group, dict(named.amounts), providers))
        else:
            funnels += [
                _funnel(replace(group, amounts=(amount,)), dict([name]), providers)
                for amount, name in parts
            ]
    return tuple(funnels)


def of_roots(
    query: model.Query[int],
    by_failures: Mapping[Failures, Iterable[AnchorPattern]],
    candidates: Trees,
    keys: Sequence[str],
) -> RootFunnel:
    """Return how many roots remain after each check.

    :param query: the query
    :param by_failures: the patterns of all anchors, grouped by the conditions that fail in them
    :param candidates: the trees that have candidates
    :param keys: the keys of the conditions
    """
    total = anchors = served = 0
    # Number of the first condition that fails alone -> the number of roots.
    lost: Counter[int] = Counter()
    for failures, of_failures in by_failures.items():
        first = (failures.alone & -failures.alone).bit_length() - 1
        for pattern in of_failures:
            total += pattern.count
            lost[first] += pattern.count
            if eligibility.is_anchor(pattern.anchor.root, query):
                anchors += pattern.count
                served += pattern.count if failures.allow(0) else 0
    losses = itertools.accumulate(lost[number] for number in range(len(keys)))
    by_condition = tuple((key, total - loss) for key, loss in zip(keys, losses, strict=True))
    return RootFunnel(total, anchors, served, candidates, by_condition)


def _funnel(
    group: model.Group[int], amounts: Mapping[str, int], providers: Iterable[ProviderPattern]
) -> GroupFunnel:
    remaining = dict.fromkeys(CHECKS, 0)
    steps = tuple(zip(CHECKS, _checks(group), strict=True))
    for pattern in providers:
        for name, passes in steps:
            if not passes(pattern.provider, pattern.root):
                break
            remaining[name] += pattern.count
    return GroupFunnel(group.suffix, amounts, remaining)


_Check = Callable[[model.Provider, model.Provider], bool]


def _checks(group: model.Group[int]) -> tuple[_Check, ...]:
    """Return a function for each of `CHECKS`, which receives a provider and its root."""

    def passes(number: int) -> _Check:
        return lambda provider, _root: all(
            provider_kinds.passed_checks(provider.inventories[class_id], amount) > number
            for class_id, amount in group.amounts
        )

    classes = {class_id for class_id, _ in group.amounts}
    only: model.Group[int] = model.Group(group.suffix)
    return (
        lambda provider, _root: classes <= provider.inventories.keys(),
        passes(provider_kinds.UNITS),
        passes(provider_kinds.EMPTY_CAPACITY),
        passes(provider_kinds.FREE_CAPACITY),
        _satisfies(replace(only, in_tree=group.in_tree)),
        _satisfies(
            replace(
                only,
                member_of=group.member_of,
                forbidden_aggregates=group.forbidden_aggregates,
            )
        ),
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
