"""Finds the relaxations: the minimal sets of conditions without which the query has candidates.

All relaxations of one condition are found. If there is none, all of two conditions are.

Most trees cannot have candidates without some conditions, because other conditions fail there, too.
So each condition is first checked alone. A set of conditions is represented by a bit mask: bit n
stands for the condition with the number n.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
import functools
import itertools
import operator
from typing import Any, NamedTuple

from placement.admin.console import Advance, Progress
from placement.admin.explain import conditions
from placement.admin.explain.conditions import REQUIRED, RESOURCES, Condition, Conditions
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
# A part of the JSON document.
Json = dict[str, Any]
# Returns the providers of an anchor that satisfy a condition.
Check = Callable[[model.Anchor], Iterable[model.Provider]]


class Trees(NamedTuple):
    """The trees that have candidates.

    :ivar anchors: at most `MAX_TREES` of these trees
    :ivar more: whether there are, or may be, more trees
    :ivar cut: whether the search reached the search limit before it was complete
    """

    anchors: Sequence[model.Anchor] = ()
    more: bool = False
    cut: bool = False

    @property
    def document(self) -> Json:
        """The form in the JSON document."""
        cut = {'cut': True} if self.cut else {}
        return {'trees': len(self.anchors), 'more': self.more} | cut


class Relaxation(NamedTuple):
    """A set of conditions without which the query has candidates.

    The search of such a set may also have reached the search limit.
    """

    without: tuple[Condition, ...]
    trees: Trees

    @property
    def document(self) -> Json:
        """The form in the JSON document."""
        trees = {'cut': True} if self.trees.cut else self.trees.document
        return {'without': [condition.key for condition in self.without], **trees}


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
    :ivar anchors: the anchors of the cloud, each with the conditions that fail in it
    """

    conditions: Conditions
    nested: bool
    anchors: Sequence[tuple[Failures, model.Anchor]]

    def trees(
        self,
        relaxed: Collection[Condition],
        limit: Budget,
        advance: Advance = lambda _count: None,
    ) -> Trees:
        """Return the trees that have candidates if these conditions are relaxed.

        If a proper subset of the conditions yields candidates, some trees may not be counted. If a
        group would not have any condition, the result is empty.

        :param limit: updated with the search steps
        :param advance: called with the number of trees whose search is complete
        """
        mask = _mask(condition in relaxed for condition in self.conditions)
        possible = [anchor for failures, anchor in self.anchors if failures.allow(mask)]
        parts = [one.relaxed if one in relaxed else one.part for one in self.conditions]
        query = conditions.query_of(parts, self.nested)
        groups = {condition.suffix for condition in self.conditions} - {None}
        if not possible or len(query.groups) < len(groups):
            return Trees()
        if limit.is_exceeded:
            return Trees(more=True, cut=True)
        prepared = model.PreparedQuery.of(query, one_per_tree=not query.nested)
        with_candidates = _with_candidates(prepared, possible, limit, advance)
        found = list(itertools.islice(with_candidates, MAX_TREES + 1))
        cut = limit.is_exceeded
        return Trees(found[:MAX_TREES], more=cut or len(found) > MAX_TREES, cut=cut)

    def relaxations(self, max_steps: int, progress: Progress) -> tuple[list[Relaxation], bool]:
        """Return the relaxations of a query that has no candidates.

        :param max_steps: the search limit of each condition, and of all pairs together
        :returns: also whether pairs are needed, but not judged, because the query has too many
            conditions
        """
        sets = [(one,) for one in self.conditions]
        singles = self._judged('one condition', sets, lambda: Budget(max_steps), progress)
        # Without these conditions, there may be candidates, because the search was cut.
        undecided = frozenset(one.without[0] for one in singles if one.trees.cut)
        if len(undecided) < len(singles):
            return singles, False
        if len(self.conditions) > MAX_CONDITIONS_FOR_PAIRS:
            return singles, True
        pairs = list(itertools.combinations(self.conditions, 2))
        limit = Budget(max_steps)
        found = self._judged('two conditions', pairs, lambda: limit, progress, undecided)
        return singles + found, False

    def _judged(
        self,
        what: str,
        sets: Sequence[tuple[Condition, ...]],
        limit: Callable[[], Budget],
        progress: Progress,
        undecided: frozenset[Condition] = frozenset(),
    ) -> list[Relaxation]:
        """Return the sets without which the query has candidates, or whose search was cut.

        :param limit: returns the search limit of a set
        :param undecided: the conditions whose sets are not searched
        """
        found = []
        with progress(f'Leaving out {what}', len(sets)) as advance:
            for without in sets:
                decided = undecided.isdisjoint(without)
                trees = self.trees(without, limit()) if decided else Trees(cut=True)
                if trees.anchors or trees.cut:
                    found.append(Relaxation(without, trees))
                advance(1)
        return found


def _with_candidates(
    prepared: model.PreparedQuery,
    anchors: Iterable[model.Anchor],
    limit: Budget,
    advance: Advance,
) -> Iterator[model.Anchor]:
    """Yield the anchors that have a candidate, until the search limit is exceeded."""
    waiting = [(anchor, _FIRST_SHARE) for anchor in anchors]
    # The list becomes longer in the loop.
    for anchor, share in waiting:
        bindings = solver.solve(prepared, anchor, limit)
        limit.grant(share)
        found = next(iter(bindings), None)
        if limit.is_exceeded:
            return
        if found is None and limit.is_spent:
            waiting.append((anchor, share * _GROWTH))
            continue
        advance(1)
        if found is not None:
            yield anchor


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
    always = _mask(condition.is_joint for condition in all_conditions)
    found = []
    # PERF: in most clouds, the same conditions fail in many anchors, and share one object.
    known: dict[Failures, Failures] = {}
    with progress('Checking conditions', len(anchors)) as advance:
        for anchor in anchors:
            failures = _failures(anchor, checks, slots, always)
            found.append((known.setdefault(failures, failures), anchor))
            advance(1)
    return Search(all_conditions, query.nested, found)


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
    alone = functools.reduce(operator.and_, (mask for _, mask in failing))
    of_slots = tuple(
        frozenset(mask & of_slot for present, mask in failing if classes <= present)
        for classes, of_slot in slots
    )
    effective = functools.reduce(operator.or_, itertools.chain(*of_slots), alone | always)
    return Failures(alone, of_slots, effective)


def _mask(bits: Iterable[bool]) -> Mask:
    return sum(1 << number for number, bit in enumerate(bits) if bit)


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
