"""Finds the relaxations: the minimal sets of conditions without which the query has candidates.

All relaxations of one condition are found. If there is none, all of two conditions are.

Most trees cannot have candidates without some conditions, because other conditions fail there, too.
So each condition is first checked alone. A set of conditions is represented by a bit mask: bit n
stands for the condition with the number n.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
import functools
import itertools
import operator
from typing import NamedTuple

from placement.admin.console import Advance, Progress
from placement.admin.explain import conditions
from placement.admin.explain.conditions import MEMBER_OF, REQUIRED, RESOURCES, Condition, Conditions
from placement.candidates import eligibility, model, solver
from placement.candidates.selection import Budget

# Trees are counted up to this number.
MAX_TREES = 1_000
# Pairs are judged for queries with at most this number of conditions.
MAX_CONDITIONS_FOR_PAIRS = 40
# The search steps of the first search of a tree. If they are not enough, the tree is searched again
# after all others, with `_GROWTH` times as many steps. So a tree that takes long to search does not
# delay the others.
_FIRST_SHARE = 10_000
_GROWTH = 4

Mask = int
# Returns the providers of an anchor that satisfy a condition.
Check = Callable[[model.Anchor], Iterable[model.Provider]]


@dataclass(frozen=True, slots=True)
class Trees:
    """The number of trees that have candidates.

    :ivar more: whether there are, or may be, more trees than `count`
    :ivar cut: whether the search reached the search limit before it was complete
    :ivar roots: the ids of the roots of these trees
    """

    count: int
    more: bool = False
    cut: bool = False
    roots: tuple[int, ...] = ()


class Relaxation(NamedTuple):
    """A set of conditions without which the query has candidates.

    The search of such a set may also have reached the search limit.
    """

    without: tuple[Condition, ...]
    trees: Trees


class Failures(NamedTuple):
    """The conditions that fail in an anchor.

    :ivar alone: the conditions that no provider in reach satisfies
    :ivar slots: for each slot, the sets of conditions of which one must be relaxed so that some
        provider can serve the slot. An empty set means that a provider can serve it as it is, and
        no set means that no provider has the inventories
    :ivar effective: the conditions whose relaxation may change the candidates of the anchor
    """

    alone: Mask
    slots: tuple[frozenset[Mask], ...]
    effective: Mask

    def allow(self, relaxed: Mask) -> bool:
        """Whether the anchor may have candidates if these conditions are relaxed.

        It has none if a slot has no eligible provider. If a relaxed condition has no effect, the
        candidates are those of a smaller set of relaxed conditions, which is expected to have none.
        """
        if self.alone & ~relaxed or relaxed & ~self.effective:
            return False
        return all(any(not mask & ~relaxed for mask in masks) for masks in self.slots)


@dataclass(frozen=True, slots=True)
class Search:
    """The search of a cloud without some of the conditions of a query.

    :ivar nested: whether a candidate may use several providers of one tree
    :ivar failures: the anchors of the cloud, grouped by the conditions that fail in them
    """

    conditions: Conditions
    nested: bool
    failures: dict[Failures, list[model.Anchor]]

    def trees(
        self,
        relaxed: Collection[Condition],
        limit: Budget,
        advance: Advance = lambda _count: None,
        nested: bool | None = None,
    ) -> Trees:
        """Return the number of trees that have candidates if these conditions are relaxed.

        If a proper subset of the conditions yields candidates, some trees may not be counted.

        :param limit: updated with the search steps
        :param advance: called with the number of trees whose search is complete
        :param nested: in place of the attribute
        """
        mask = _mask(condition in relaxed for condition in self.conditions)
        possible = [
            anchor
            for failures, anchors in self.failures.items()
            if failures.allow(mask)
            for anchor in anchors
        ]
        if not possible:
            return Trees(0)
        if limit.is_exceeded:
            return Trees(0, more=True, cut=True)
        query = self._query(relaxed, self.nested if nested is None else nested)
        prepared = model.PreparedQuery.of(query, one_per_tree=not query.nested)
        found: list[int] = []
        for anchor in _with_candidates(prepared, possible, limit, advance):
            found.append(anchor.root.id)
            if len(found) > MAX_TREES:
                return Trees(MAX_TREES, more=True, roots=tuple(found[:MAX_TREES]))
        exceeded = limit.is_exceeded
        return Trees(len(found), more=exceeded, cut=exceeded, roots=tuple(found))

    def _query(self, relaxed: Collection[Condition], nested: bool) -> model.Query[int]:
        parts = [one.relaxed if one in relaxed else one.part for one in self.conditions]
        return conditions.query_of(parts, nested)

    def relaxations(self, max_steps: int, progress: Progress) -> list[Relaxation]:
        """Return the relaxations of a query that has no candidates.

        :param max_steps: the search limit of each condition, and of all pairs together
        """
        singles = []
        with progress('Leaving out one condition', len(self.conditions)) as advance:
            for condition in self.conditions:
                singles += self._judged((condition,), Budget(max_steps))
                advance(1)
        # Without these conditions, there may be candidates, because the search was cut.
        undecided = {one.without[0] for one in singles if one.trees.cut}
        if len(undecided) < len(singles) or self.omits_pairs(singles):
            return singles
        pairs = list(itertools.combinations(self.conditions, 2))
        found, limit = singles, Budget(max_steps)
        with progress('Leaving out two conditions', len(pairs)) as advance:
            for pair in pairs:
                if undecided.isdisjoint(pair):
                    found += self._judged(pair, limit)
                else:
                    found.append(Relaxation(pair, Trees(0, cut=True)))
                advance(1)
        return found

    def omits_pairs(self, found: Iterable[Relaxation]) -> bool:
        """Whether pairs are needed, but not judged, because the query has too many conditions."""
        return len(self.conditions) > MAX_CONDITIONS_FOR_PAIRS and all(
            one.trees.cut for one in found
        )

    def _judged(self, without: tuple[Condition, ...], limit: Budget) -> list[Relaxation]:
        """Return the set, if the query has candidates without it or if the search was cut."""
        groups = {condition.suffix for condition in self.conditions} - {None}
        if len(self._query(without, self.nested).groups) < len(groups):
            return []  # a group would not have any condition
        trees = self.trees(without, limit)
        return [Relaxation(without, trees)] if trees.count or trees.cut else []


def _with_candidates(
    prepared: model.PreparedQuery,
    anchors: Iterable[model.Anchor],
    limit: Budget,
    advance: Advance,
) -> Iterator[model.Anchor]:
    """Yield the anchors that have a candidate, until the search limit is exceeded."""
    share = _FIRST_SHARE
    while anchors:
        cut = []
        for anchor in anchors:
            bindings = solver.solve(prepared, anchor, limit)
            limit.grant(share)
            found = next(iter(bindings), None)
            if limit.is_exceeded:
                return
            if found is None and limit.is_spent:
                cut.append(anchor)
                continue
            advance(1)
            if found is not None:
                yield anchor
        anchors = cut
        share *= _GROWTH


# Checks of each condition -----------------------------------------------------


def search_of(
    all_conditions: Conditions,
    query: model.Query[int],
    anchors: Collection[model.Anchor],
    progress: Progress,
) -> Search:
    """Return the search of all anchors of a cloud.

    :param query: the query that has these conditions
    """
    checks = list(map(_check_of, all_conditions))
    slots = [_slot_of(slot, all_conditions) for slot in model.slots_of(query)]
    always = _always_effective(all_conditions)
    grouped: dict[Failures, list[model.Anchor]] = {}
    with progress('Checking conditions', len(anchors)) as advance:
        for anchor in anchors:
            failures = _failures(anchor, checks, slots, always)
            grouped.setdefault(failures, []).append(anchor)
            advance(1)
    return Search(all_conditions, query.nested, grouped)


def check_of(group: model.Group[int]) -> Check:
    """Return the function that returns the providers of an anchor that satisfy a group.

    It does not check the required traits of the unsuffixed group, which all of its providers
    satisfy together.

    :param group: if it is the unsuffixed group, it has at most one amount
    """
    if group.suffix or group.amounts:
        slot = model.Slot(group, group.amounts)
        return functools.partial(eligibility.eligible_providers, slot)
    return functools.partial(eligibility.permitted_providers, group)


def _check_of(condition: Condition) -> Check:
    if condition.kind in conditions.OF_SEVERAL_PROVIDERS:
        return lambda anchor: anchor.providers
    query = condition.part
    if not query.groups:
        return lambda anchor: [anchor.root] if eligibility.is_anchor(anchor.root, query) else []
    (group,) = query.groups
    # As the only condition of a suffixed group, required traits are checked for each provider.
    return check_of(replace(group, suffix=REQUIRED) if condition.kind == REQUIRED else group)


def _failures(
    anchor: model.Anchor,
    checks: Iterable[Check],
    slots: Iterable[tuple[frozenset[int], Mask]],
    always: Mask,
) -> Failures:
    satisfying = [frozenset(provider.id for provider in check(anchor)) for check in checks]
    failing = [
        (provider.inventories.keys(), _mask(provider.id not in ids for ids in satisfying))
        for provider in anchor.providers
    ]
    alone = _mask(not ids for ids in satisfying)
    of_slots = tuple(
        frozenset(mask & of_slot for present, mask in failing if classes <= present)
        for classes, of_slot in slots
    )
    return Failures(
        alone, of_slots, functools.reduce(operator.or_, itertools.chain(*of_slots), alone | always)
    )


def _mask(bits: Iterable[bool]) -> Mask:
    return sum(1 << number for number, bit in enumerate(bits) if bit)


def _always_effective(all_conditions: Conditions) -> Mask:
    """Return the conditions that can affect candidates even if each provider satisfies them alone.

    The amounts of several slots are added up, same_subtree and group_policy concern several
    providers, and in the unsuffixed group, the expressions of member_of must be satisfied by the
    same provider, and the required traits by all providers together.
    """
    requests = Counter(c.amount[0] for c in all_conditions if c.kind == RESOURCES)
    return _mask(
        condition.kind in conditions.OF_SEVERAL_PROVIDERS
        or (condition.kind == RESOURCES and requests[condition.amount[0]] > 1)
        or (condition.kind in (REQUIRED, MEMBER_OF) and not condition.suffix)
        for condition in all_conditions
    )


def _slot_of(slot: model.Slot, all_conditions: Sequence[Condition]) -> tuple[frozenset[int], Mask]:
    """Return the classes of a slot, and its conditions."""
    classes = frozenset(class_id for class_id, _ in slot.amounts)
    collective = () if slot.suffixed else (REQUIRED,)
    return classes, _mask(
        condition.suffix == slot.group.suffix
        and condition.kind not in collective
        and (condition.kind != RESOURCES or condition.amount[0] in classes)
        for condition in all_conditions
    )
