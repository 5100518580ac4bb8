"""Possible claims, and their free capacity, by the definition of candidates (`naive`)."""

from collections import Counter
from collections.abc import Callable, Iterator

from placement.candidates import model
from placement.tests import worlds
from placement.tests.worlds import naive

# The id of a provider, and that of a class.
Key = tuple[int, int]


class Cloud:
    """The anchors of a world, whose usage grows with each claim."""

    def __init__(self, query: model.Query[int], world: worlds.World) -> None:
        self.query = query
        self._slots = model.slots_of(query)
        self._world = world
        self.taken: Counter[Key] = Counter()

    def amounts(self, binding: model.Binding) -> Counter[Key]:
        """Return what a claim takes from each inventory."""
        found: Counter[Key] = Counter()
        for slot, provider_id in zip(self._slots, binding, strict=True):
            for class_id, amount in slot.amounts:
                found[provider_id, class_id] += amount
        return found

    def claim(self, binding: model.Binding) -> None:
        self.taken.update(self.amounts(binding))

    def candidates(self) -> Iterator[tuple[str, model.Binding]]:
        """Yield the UUID of the anchor root and the binding of each candidate."""
        for anchor in self._world.anchors:
            current = with_providers(anchor, self._used)
            for binding in naive.solve(self.query, current):
                yield anchor.root.uuid, binding

    def limit(self) -> tuple[int, int, int] | None:
        """Return the class that the most trees lack, their number, and that of all that suit."""
        found = map(self._lacking, self._world.anchors)
        trees = [classes for classes in found if classes is not None]
        lacking = Counter(class_id for classes in trees for class_id in classes)
        most = min(lacking, key=lambda class_id: (-lacking[class_id], class_id), default=None)
        return None if most is None else (most, lacking[most], len(trees))

    def _lacking(self, anchor: model.Anchor) -> set[int] | None:
        """Return the classes that an anchor lacks; None if it does not suit the query."""
        query, root = self.query, anchor.root
        if query.root_required - root.traits or query.root_forbidden & root.traits:
            return None
        suitable = [
            [p for p in anchor.providers if naive.can_serve(slot, _unlimited(p), root)]
            for slot in self._slots
        ]
        unsuffixed = [
            p for n, slot in enumerate(self._slots) if not slot.suffixed for p in suitable[n]
        ]
        if not all(suitable) or not all(
            any(any_set & p.traits for p in unsuffixed) for any_set in query.collective_traits
        ):
            return None
        return {
            class_id
            for slot, providers in zip(self._slots, suitable, strict=True)
            for class_id, amount in slot.amounts
            if not any(_can_serve(self._used(p), class_id, amount) for p in providers)
        }

    def _used(self, provider: model.Provider) -> model.Provider:
        inventories = {
            class_id: inventory._replace(used=inventory.used + self.taken[provider.id, class_id])
            for class_id, inventory in provider.inventories.items()
        }
        return provider._replace(inventories=inventories)


def with_providers(
    anchor: model.Anchor, changed: Callable[[model.Provider], model.Provider]
) -> model.Anchor:
    """Return an anchor with changed providers."""
    return anchor._replace(
        root=changed(anchor.root),
        tree=tuple(map(changed, anchor.tree)),
        sharing_providers=tuple(map(changed, anchor.sharing_providers)),
    )


def _can_serve(provider: model.Provider, class_id: int, amount: int) -> bool:
    one = provider.inventories[class_id]
    return (
        one.used + amount <= (one.total - one.reserved) * one.allocation_ratio
        and one.min_unit <= amount <= one.max_unit
        and amount % one.step_size == 0
    )


def _unlimited(provider: model.Provider) -> model.Provider:
    """Return the provider with inventories that permit each amount."""
    return provider._replace(
        inventories={
            class_id: model.ProviderInventory(class_id, 10**9, 0, 1, 10**9, 1, 1.0, 0)
            for class_id in provider.inventories
        }
    )
