"""Groups the anchors of a cloud that no condition of the query can distinguish.

A cloud with 100,000 hosts has few different hosts from the point of view of one query: only the
requested classes, traits, aggregates and trees matter, and of an inventory only which requested
amounts it can serve. Anchors that are equal in all of these respects have the same *pattern*. The
search runs once for each pattern, with one of its anchors as the example. Because only one example
is kept, the memory does not grow with the cloud.

The values that make up a pattern are interned: equal values are represented by the same integer.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from placement import capacity
from placement.admin.explain import conditions
from placement.candidates import contention, model

# Stands for the id of a parent that does not exist.
_NO_PARENT = -1
# If more slots than this number request a class, the possible sums of their amounts are not
# computed.
_MAX_SUMMANDS = 10

# The checks of one amount against one inventory, in the order of the funnel. The number of an
# inventory is the number of checks that it passes.
UNITS, EMPTY_CAPACITY, FREE_CAPACITY = range(3)
PASSED_ALL = 3


def passed_checks(inventory: model.ProviderInventory, amount: int) -> int:
    """Return how many of the checks of units, empty capacity and free capacity are passed."""
    _, _, _, min_unit, max_unit, step_size, _, used = inventory
    if capacity.unit_violation(amount, min_unit, max_unit, step_size):
        return UNITS
    if not capacity.fits(amount, 0, inventory.capacity):
        return EMPTY_CAPACITY
    if not capacity.fits(amount, used, inventory.capacity):
        return FREE_CAPACITY
    return PASSED_ALL


@dataclass(slots=True)
class Largest:
    """The largest value of several providers, and the ids of the providers that have it."""

    value: int = -1
    provider_ids: list[int] = field(default_factory=list)

    def add(self, value: int, provider_id: int) -> None:
        """Consider the value of one more provider."""
        if value > self.value:
            self.value, self.provider_ids = value, [provider_id]
        elif value == self.value:
            self.provider_ids.append(provider_id)

    def merge(self, other: 'Largest') -> None:
        """Consider the values of other providers."""
        if other.value > self.value:
            self.value, self.provider_ids = other.value, list(other.provider_ids)
        elif other.value == self.value:
            self.provider_ids += other.provider_ids


@dataclass(slots=True)
class ClassFacts:
    """The largest amounts of one resource class among the providers of a pattern."""

    free: Largest = field(default_factory=Largest)
    max_unit: Largest = field(default_factory=Largest)


@dataclass(slots=True)
class ProviderPattern:
    """Providers that no condition can distinguish, and whose roots it cannot distinguish either."""

    provider: model.Provider
    root: model.Provider
    count: int = 0
    # Requested resource class -> its largest amounts.
    classes: defaultdict[int, ClassFacts] = field(default_factory=lambda: defaultdict(ClassFacts))


@dataclass(slots=True)
class AnchorPattern:
    """Anchors that no condition can distinguish.

    :ivar anchor: the example. Each of its providers with an inventory of a requested class also has
        an inventory that stands for the presence of this inventory (see `conditions.presence`)
    :ivar root_ids: the roots of all anchors with this pattern
    """

    anchor: model.Anchor
    root_ids: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of anchors with this pattern."""
        return len(self.root_ids)


class Patterns:
    """The patterns of all anchors of a cloud, and of all providers of their trees."""

    def __init__(self, query: model.Query[int]) -> None:
        self.anchors: dict[Hashable, AnchorPattern] = {}
        self.providers: dict[tuple[int, int], ProviderPattern] = {}
        self._view = _View(query)
        self._with_positions = bool(query.same_subtrees)
        self._numbers: dict[Hashable, int] = {}
        self._sharing: dict[tuple[int, ...], int] = {}

    def add(self, anchors: Iterable[model.Anchor]) -> None:
        """Add the anchors of a page. Each anchor of the cloud must be added once."""
        for anchor in anchors:
            root_seen = self._seen(anchor.root)
            seen = {provider.id: self._seen(provider) for provider in anchor.tree}
            for provider in anchor.tree:
                self._count(provider, anchor.root, (seen[provider.id], root_seen))
            tree = self._tree(anchor, seen) if len(seen) > 1 else root_seen
            sharing = anchor.sharing_providers
            key = (tree, self._of_sharing(sharing)) if sharing else tree
            pattern = self.anchors.get(key)
            if pattern is None:
                pattern = self.anchors[key] = AnchorPattern(self._example(anchor))
            pattern.root_ids.append(anchor.root.id)

    def _number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _seen(self, provider: model.Provider) -> int:
        return self._number(self._view.of(provider))

    def _count(self, provider: model.Provider, root: model.Provider, key: tuple[int, int]) -> None:
        pattern = self.providers.get(key)
        if pattern is None:
            pattern = self.providers[key] = ProviderPattern(provider, root)
        pattern.count += 1
        for class_id in self._view.classes:
            if inventory := provider.inventories.get(class_id):
                facts = pattern.classes[class_id]
                facts.free.add(max(0, int(inventory.capacity) - inventory.used), provider.id)
                facts.max_unit.add(inventory.max_unit, provider.id)

    def _tree(self, anchor: model.Anchor, seen: Mapping[int, int]) -> Hashable:
        """Return a value that is equal for trees that no condition can distinguish."""
        if self._with_positions:
            children = _children(anchor.tree)
            tops = [anchor.root, *children.get(_NO_PARENT, ())]
            root, *others = (self._form(top, children, seen) for top in tops)
            return root, *sorted(others)
        others = sorted(seen[p.id] for p in anchor.tree if p is not anchor.root)
        return seen[anchor.root.id], *others

    def _form(
        self,
        top: model.Provider,
        children: Mapping[int, Sequence[model.Provider]],
        seen: Mapping[int, int],
    ) -> int:
        """Return a number that is equal for subtrees with equal providers in equal positions."""
        forms: dict[int, int] = {}
        stack = [(top, False)]
        while stack:
            provider, visited = stack.pop()
            below = children.get(provider.id, ())
            if visited:
                parts = sorted(forms[child.id] for child in below)
                forms[provider.id] = self._number((seen[provider.id], 'children', *parts))
            else:
                stack.append((provider, True))
                stack += [(child, False) for child in below]
        return forms[top.id]

    def _of_sharing(self, providers: Sequence[model.Provider]) -> int:
        """Return a number that is equal for sharing providers that no condition can distinguish.

        With same_subtree, the trees of the sharing providers matter too: then only the same
        providers have the same number.
        """
        ids = tuple(provider.id for provider in providers)
        if ids not in self._sharing:
            by_root: dict[int, list[int]] = defaultdict(list)
            for provider in providers:
                by_root[provider.root_id].append(self._seen(provider))
            trees = sorted(tuple(sorted(seen)) for seen in by_root.values())
            self._sharing[ids] = self._number(
                ('sharing', *(ids if self._with_positions else trees))
            )
        return self._sharing[ids]

    def _example(self, anchor: model.Anchor) -> model.Anchor:
        tree = tuple(self._with_presence(provider) for provider in anchor.tree)
        return anchor._replace(
            root=next(provider for provider in tree if provider.id == anchor.root.id),
            tree=tree,
            sharing_providers=tuple(map(self._with_presence, anchor.sharing_providers)),
        )

    def _with_presence(self, provider: model.Provider) -> model.Provider:
        return with_presence(provider, self._view.classes)


def with_presence(provider: model.Provider, classes: Iterable[int]) -> model.Provider:
    """Return the provider with an inventory for the presence of each inventory of these classes."""
    inventories = dict(provider.inventories)
    for class_id in classes:
        if class_id in inventories:
            id_ = conditions.presence(class_id)
            inventories[id_] = model.ProviderInventory(
                id_, capacity.MAX_INT, 0, 1, capacity.MAX_INT, 1, 1.0, 0
            )
    return provider._replace(inventories=inventories)


def _children(tree: Sequence[model.Provider]) -> dict[int, list[model.Provider]]:
    """Return the children of each provider, and those of `_NO_PARENT`.

    In a damaged database, the parent of a provider may not exist.
    """
    ids = {provider.id for provider in tree}
    children: dict[int, list[model.Provider]] = defaultdict(list)
    for provider in tree:
        if provider.parent_id is not None:
            parent = provider.parent_id if provider.parent_id in ids else _NO_PARENT
            children[parent].append(provider)
    return children


class _View:
    """What the conditions of a query can see of a provider.

    PERF: inventories, traits and aggregates repeat in large clouds, so the results are cached.
    """

    def __init__(self, query: model.Query[int]) -> None:
        self.classes = sorted(query.classes)
        self._traits = query.traits
        self._aggregates = query.aggregates
        self._in_trees = query.in_trees
        amounts: dict[int, list[int]] = defaultdict(list)
        for slot in model.slots_of(query):
            for class_id, amount in slot.amounts:
                amounts[class_id].append(amount)
        self._amounts = {class_id: sorted(set(values)) for class_id, values in amounts.items()}
        # Class that several slots request -> the sums that they can take from one provider.
        self._sums = {
            class_id: _sums(values) for class_id, values in amounts.items() if len(values) > 1
        }
        self._of_inventory: dict[model.ProviderInventory, Hashable] = {}
        self._of_ids: dict[tuple[frozenset[int], frozenset[int]], Hashable] = {}

    def of(self, provider: model.Provider) -> Hashable:
        """Return a value that is equal for providers that no condition can distinguish."""
        ids = provider.traits, provider.aggregates
        relevant = self._of_ids.get(ids)
        if relevant is None:
            relevant = provider.traits & self._traits, provider.aggregates & self._aggregates
            self._of_ids[ids] = relevant
        inventories = provider.inventories
        return (
            relevant,
            provider.root_id if provider.root_id in self._in_trees else None,
            *(
                self._inventory(inventories[class_id]) if class_id in inventories else None
                for class_id in self.classes
            ),
        )

    def _inventory(self, inventory: model.ProviderInventory) -> Hashable:
        found = self._of_inventory.get(inventory)
        if found is None:
            class_id = inventory.class_id
            passed = (passed_checks(inventory, amount) for amount in self._amounts[class_id])
            found = self._of_inventory[inventory] = (*passed, self._largest_sum(inventory))
        return found

    def _largest_sum(self, inventory: model.ProviderInventory) -> int | None:
        """Return the largest sum that slots can take from an inventory that several may use."""
        sums = self._sums.get(inventory.class_id)
        if sums is None:
            return None
        free = max(0, contention.free_capacity_of(inventory))
        return sums[bisect_right(sums, free) - 1]


def _sums(amounts: Sequence[int]) -> Sequence[int]:
    """Return the sums of all subsets in ascending order, starting with 0."""
    # No inventory can serve a larger amount.
    amounts = [min(amount, capacity.MAX_INT + 1) for amount in amounts]
    if len(amounts) > _MAX_SUMMANDS:
        return range(sum(amounts) + 1)
    sums = {0}
    for amount in amounts:
        sums |= {amount + known for known in sums}
    return sorted(sums)
