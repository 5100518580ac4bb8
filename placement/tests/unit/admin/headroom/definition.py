"""Which claims are possible, by the definition of candidates (`naive`)."""

from collections import Counter
from collections.abc import Iterator

from placement.admin.headroom import simulation
from placement.admin.headroom.free_capacity import amounts_of
from placement.admin.headroom.simulation import Simulation
from placement.candidates import model, solver
from placement.candidates.joint_conditions import InventoryKey
from placement.tests import worlds
from placement.tests.worlds import naive


def simulate(query: model.Query[int], world: worlds.World) -> Simulation:
    prepared = solver.PreparedQuery.of(query, one_per_tree=not query.nested)
    return simulation.simulate(prepared, world.anchors, world.sharing_id)


class Cloud:
    """The anchors of a world, whose usage grows with each claim."""

    def __init__(self, query: model.Query[int], world: worlds.World) -> None:
        self.query = query
        self._slots = model.slots_of(query)
        self._world = world
        self.taken: Counter[InventoryKey] = Counter()

    def claim(self, binding: model.Binding) -> None:
        self.taken.update(amounts_of(self._slots, binding))

    def release(self, binding: model.Binding) -> None:
        self.taken.subtract(amounts_of(self._slots, binding))

    def candidates(self) -> Iterator[tuple[str, model.Binding]]:
        """Yield the UUID of the anchor root and the binding of each candidate."""
        for anchor in self._world.anchors:
            current = anchor._replace(
                root=self._used(anchor.root),
                tree=tuple(map(self._used, anchor.tree)),
                sharing_providers=tuple(map(self._used, anchor.sharing_providers)),
            )
            for binding in naive.solve(self.query, current):
                yield anchor.root.uuid, binding

    def _used(self, provider: model.Provider) -> model.Provider:
        inventories = {
            class_id: inventory._replace(used=inventory.used + self.taken[provider.id, class_id])
            for class_id, inventory in provider.inventories.items()
        }
        return provider._replace(inventories=inventories)


def most_claims(cloud: Cloud, seen: dict[frozenset[object], int]) -> int:
    """Return the largest number of claims, by trying all orders of claims."""
    state = frozenset(item for item in cloud.taken.items() if item[1])
    if state not in seen:
        seen[state] = 0
        for binding in {binding for _, binding in cloud.candidates()}:
            cloud.claim(binding)
            seen[state] = max(seen[state], 1 + most_claims(cloud, seen))
            cloud.release(binding)
    return seen[state]
