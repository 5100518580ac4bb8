"""Claims one candidate after another until no candidate is left.

Usage only grows, and more usage never adds a candidate. Two rules follow:

* An anchor without a candidate stays without one, so one pass over the anchors is enough.
* A search that began before a claim yields every candidate that is left after the claim, besides
  candidates that do not fit any more. So the search of an anchor continues after a claim, and the
  amounts of each further candidate are checked. If too many candidates do not fit, a new search
  with the present usage begins: with eight devices for eight groups, the old one would have 40,320
  candidates.

The anchors are visited in the order of the UUIDs of their roots. Several anchors can have the same
candidate if it uses only sharing providers. This order assigns it to the smallest UUID, because all
earlier anchors have no candidate left.

A tree *suits* a query if its root satisfies root_required, and it has a suitable provider for each
part of the query. A provider is *suitable* if it satisfies all conditions except for the amounts,
same_subtree, and group_policy. A tree *lacks* a class if none of the providers that are suitable
for it can serve the amount after the claims. The *limit* is the class that the most trees lack.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement import capacity
from placement.admin.console import Progress
from placement.candidates import eligibility, model, solver
from placement.candidates.model import InventoryKey
from placement.candidates.selection import Budget

# A new search begins if the old one takes this many times the steps of its first candidate without
# a candidate that fits.
RESTART_AFTER = 1

# Inventory -> the amount that a claim takes from it.
Amounts = Mapping[InventoryKey, int]


def amounts_of(slots: tuple[model.Slot, ...], binding: model.Binding) -> dict[InventoryKey, int]:
    """Return the amounts that a claim of a candidate takes."""
    amounts: dict[InventoryKey, int] = defaultdict(int)
    for slot, provider_id in zip(slots, binding, strict=True):
        for class_id, amount in slot.amounts:
            amounts[provider_id, class_id] += amount
    return amounts


class FreeCapacity:
    """The free capacity of the inventories from which simulated claims took.

    A sharing provider belongs to several anchors, so one object serves all anchors.
    """

    def __init__(self, providers: Mapping[int, model.Provider]) -> None:
        """Start with the present usage.

        :param providers: provider id -> provider, for all providers
        """
        self._providers = providers
        self._free: dict[InventoryKey, int] = {}
        # The ids of the providers from which claims took.
        self._changed: set[int] = set()

    def current(self, anchor: model.Anchor) -> model.Anchor:
        """Return the anchor with its present usage; the same object if no claim changed it."""
        if self._changed.isdisjoint([provider.id for provider in anchor.providers]):
            return anchor
        return anchor._replace(
            root=self._current(anchor.root),
            tree=tuple(map(self._current, anchor.tree)),
            sharing_providers=tuple(map(self._current, anchor.sharing_providers)),
        )

    def _current(self, provider: model.Provider) -> model.Provider:
        if provider.id not in self._changed:
            return provider
        inventories = {}
        for class_id, inventory in provider.inventories.items():
            used = capacity.free(self._of((provider.id, class_id)), inventory.capacity)
            inventories[class_id] = inventory._replace(used=used)
        return provider._replace(inventories=inventories)

    def _of(self, key: InventoryKey) -> int:
        """Return the free capacity of an inventory."""
        if key not in self._free:
            inventory = self._providers[key[0]].inventories[key[1]]
            self._free[key] = capacity.free(inventory.used, inventory.capacity)
        return self._free[key]

    def fits(self, amounts: Amounts) -> bool:
        """Whether the claims so far leave enough of the inventories that they changed."""
        return all(amount <= self._free.get(key, amount) for key, amount in amounts.items())

    def take(self, amounts: Amounts, at_most: int = capacity.MAX_INT) -> int:
        """Take the amounts of a claim as often as they fit.

        :param at_most: take them at most this often
        :returns: how often the amounts were taken
        """
        count = min(at_most, *(self._of(key) // amount for key, amount in amounts.items()))
        if count > 0:
            self.release(amounts, -count)
        return max(0, count)

    def release(self, amounts: Amounts, times: int = 1) -> None:
        """Reduce the usage of inventories."""
        for key, amount in amounts.items():
            self._free[key] = self._of(key) + times * amount
            self._changed.add(key[0])


# The simulation ----------------------------------------------------------------


class Step(NamedTuple):
    """Identical claims of one candidate.

    `root` is the root of the anchor of the candidate. The number of claims is at least 1.
    """

    root: model.Provider
    binding: model.Binding
    times: int


class Limit(NamedTuple):
    """The class that the most trees lack, the number of these trees, and of all that suit."""

    class_id: int
    lacking: int
    trees: int


class Simulation(NamedTuple):
    """The simulated claims of a query; the limit is None if no tree lacks a class."""

    steps: Sequence[Step]
    limit: Limit | None


def of_query(
    query: model.Query[int], anchors: Collection[model.Anchor], progress: Progress
) -> Simulation:
    """Simulate claims of a query until no candidate is left, and report the progress.

    :param anchors: all anchors of the cloud
    """
    prepared = model.PreparedQuery.of(query, one_per_tree=not query.nested)
    free = FreeCapacity({one.id: one for anchor in anchors for one in anchor.providers})
    steps: list[Step] = []
    with progress('Simulating claims', len(anchors)) as advance:
        for anchor in sorted(anchors, key=lambda anchor: anchor.root.uuid):
            steps += _claims(prepared, anchor, free)
            advance(1)
    return Simulation(steps, _limit(prepared, map(free.current, anchors)))


def _claims(
    prepared: model.PreparedQuery, anchor: model.Anchor, free: FreeCapacity
) -> Iterator[Step]:
    """Claim the candidates of an anchor.

    :param free: updated with each claim
    """
    is_exhausted = False
    while not is_exhausted:
        current, budget = free.current(anchor), Budget()
        is_exhausted, cost, restart_at = True, 0, 0
        for binding in solver.solve(prepared, current, budget):
            cost = cost or budget.used
            if count := free.take(amounts_of(prepared.slots, binding)):
                yield Step(anchor.root, binding, count)
                restart_at = budget.used + RESTART_AFTER * cost
            elif budget.used > restart_at:
                is_exhausted = False
                break


# The limit --------------------------------------------------------------------


def _limit(prepared: model.PreparedQuery, anchors: Iterable[model.Anchor]) -> Limit | None:
    """Return the limit.

    :param anchors: all anchors, with their usage after the claims
    """
    lacking: Counter[int] = Counter()
    trees = 0
    for anchor in anchors:
        classes = _lacking(prepared, anchor)
        if classes is not None:
            lacking.update(classes)
            trees += 1
    if not lacking:
        return None
    # Of several classes, the one with the smallest id.
    class_id = min(lacking, key=lambda class_id: (-lacking[class_id], class_id))
    return Limit(class_id, lacking[class_id], trees)


def _lacking(prepared: model.PreparedQuery, anchor: model.Anchor) -> set[int] | None:
    """Return the classes that a tree lacks; None if it does not suit the query."""
    if not eligibility.is_anchor(anchor.root, prepared.query):
        return None
    lacking: set[int] = set()
    traits: frozenset[int] = frozenset()
    for slot in (*prepared.unsuffixed.values(), *prepared.suffixed.values()):
        classes = {class_id for class_id, _ in slot.amounts}
        suitable = [one for one in _permitted(slot, anchor) if classes <= one.inventories.keys()]
        if not suitable:
            return None
        if not slot.suffixed:
            traits = traits.union(*(one.traits for one in suitable))
        for class_id, amount in slot.amounts:
            if not any(eligibility.can_allocate(one, class_id, amount) for one in suitable):
                lacking.add(class_id)
    if any(any_set.isdisjoint(traits) for any_set in prepared.query.collective_traits):
        return None
    return lacking


def _permitted(slot: model.Slot, anchor: model.Anchor) -> Sequence[model.Provider]:
    if not slot.suffixed:
        return eligibility.permitted_providers(slot.group, anchor)
    bare = slot._replace(amounts=())
    return [one for one in anchor.providers if eligibility.satisfies_suffixed_group(one, bare)]
