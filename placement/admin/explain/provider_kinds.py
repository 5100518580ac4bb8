"""Determines which providers no condition of the query can distinguish.

Such providers have the same *kind*, which is an integer. Only the traits, aggregates, classes and
trees of the query matter, and of an inventory only which requested amounts it can serve.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from placement import capacity
from placement.admin.explain import conditions
from placement.candidates import model

# If the amounts of a class have more different sums than this number, the sums are not computed.
_MAX_SUMS = 4_096
# The maximum number of inventories in the cache.
_MAX_CACHED = 50_000

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


class ProviderKinds:
    """The kinds of the providers of a cloud.

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
        self._numbers: dict[Hashable, int] = {}
        self._examples: dict[int, model.Provider] = {}
        self._of_inventory: dict[model.ProviderInventory, Hashable] = {}
        self._of_ids: dict[
            tuple[frozenset[int], frozenset[int]], tuple[frozenset[int], frozenset[int]]
        ] = {}

    def of(self, provider: model.Provider) -> int:
        """Return the kind of a provider."""
        inventories = provider.inventories
        value = (
            self._relevant_ids(provider),
            provider.root_id if provider.root_id in self._in_trees else None,
            *(
                self._inventory(inventories[class_id]) if class_id in inventories else None
                for class_id in self.classes
            ),
        )
        return self._numbers.setdefault(value, len(self._numbers))

    def example(self, provider: model.Provider, kind: int) -> model.Provider:
        """Return the provider, reduced to what the conditions of the query can distinguish.

        Each inventory also has an inventory that stands for its presence (see
        `conditions.presence`).

        PERF: the results for providers of one kind share all objects. Otherwise, a cloud of
        100,000 different hosts would need several GiB.
        """
        known = self._examples.get(kind)
        if known is None:
            traits, aggregates = self._relevant_ids(provider)
            known = self._examples[kind] = provider._replace(
                traits=traits,
                aggregates=aggregates,
                inventories=_with_presence(provider, self.classes),
            )
        return model.Provider(
            provider.id,
            known.uuid,
            provider.root_id,
            provider.parent_id,
            known.traits,
            known.aggregates,
            known.inventories,
        )

    def _relevant_ids(self, provider: model.Provider) -> tuple[frozenset[int], frozenset[int]]:
        """Return the traits and the aggregates of the provider that the query contains."""
        ids = provider.traits, provider.aggregates
        relevant = self._of_ids.get(ids)
        if relevant is None:
            relevant = provider.traits & self._traits, provider.aggregates & self._aggregates
            self._of_ids[ids] = relevant
        return relevant

    def _inventory(self, inventory: model.ProviderInventory) -> Hashable:
        found = self._of_inventory.get(inventory)
        if found is None:
            if len(self._of_inventory) >= _MAX_CACHED:
                self._of_inventory.clear()
            class_id = inventory.class_id
            passed = (passed_checks(inventory, amount) for amount in self._amounts[class_id])
            found = self._of_inventory[inventory] = (*passed, self._largest_sum(inventory))
        return found

    def _largest_sum(self, inventory: model.ProviderInventory) -> int | None:
        """Return the largest sum that slots can take from an inventory that several may use."""
        sums = self._sums.get(inventory.class_id)
        if sums is None:
            return None
        free = max(0, inventory.free)
        return sums[bisect_right(sums, free) - 1]


def _with_presence(
    provider: model.Provider, classes: Iterable[int]
) -> dict[int, model.ProviderInventory]:
    """Return the inventories of these classes, and an inventory for the presence of each."""
    inventories = {}
    for class_id in classes:
        if inventory := provider.inventories.get(class_id):
            id_ = conditions.presence(class_id)
            inventories[class_id] = inventory
            inventories[id_] = model.ProviderInventory(
                id_, capacity.MAX_INT, 0, 1, capacity.MAX_INT, 1, 1.0, 0
            )
    return inventories


def _sums(amounts: Sequence[int]) -> Sequence[int]:
    """Return the sums of all subsets in ascending order, starting with 0.

    If there are more than `_MAX_SUMS`, all integers up to the largest sum are returned instead.
    """
    # No inventory can serve a larger amount.
    amounts = [min(amount, capacity.MAX_INT + 1) for amount in amounts]
    sums = {0}
    for amount in amounts:
        sums |= {amount + known for known in sums}
        if len(sums) > _MAX_SUMS:
            return range(sum(amounts) + 1)
    return sorted(sums)
