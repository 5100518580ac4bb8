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

    def most_claims(self, seen: dict[frozenset[object], int]) -> int:
        """Return the largest number of claims, by trying all orders of claims."""
        state = frozenset(item for item in self.taken.items() if item[1])
        if state not in seen:
            seen[state] = 0
            for binding in {binding for _, binding in self.candidates()}:
                self.claim(binding)
                seen[state] = max(seen[state], 1 + self.most_claims(seen))
                self.taken.subtract(self.amounts(binding))
        return seen[state]

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


def free_capacity(query: model.Query[int], world: worlds.World) -> dict[int, int]:
    """Return the free capacity of the suitable providers, by class id."""
    found: dict[Key, int] = {}
    slots = model.slots_of(query)
    for anchor in world.anchors:
        if query.root_required - anchor.root.traits or query.root_forbidden & anchor.root.traits:
            continue
        suitable = [
            [p for p in anchor.providers if naive.can_serve(slot, _unlimited(p), anchor.root)]
            for slot in slots
        ]
        unsuffixed = [p for n, slot in enumerate(slots) if not slot.suffixed for p in suitable[n]]
        if not all(suitable) or not all(
            any(any_set & p.traits for p in unsuffixed) for any_set in query.collective_traits
        ):
            continue
        for slot, providers in zip(slots, suitable, strict=True):
            for class_id, _ in slot.amounts:
                for p in providers:
                    inventory = p.inventories[class_id]
                    free = int(inventory.capacity) - inventory.used
                    found[p.id, class_id] = max(0, free)
    return {
        class_id: sum(n for (_, one), n in found.items() if one == class_id)
        for class_id in query.classes
    }


def _unlimited(provider: model.Provider) -> model.Provider:
    """Return the provider with inventories that permit each amount."""
    return provider._replace(
        inventories={
            class_id: model.ProviderInventory(class_id, 10**9, 0, 1, 10**9, 1, 1.0, 0)
            for class_id in provider.inventories
        }
    )
