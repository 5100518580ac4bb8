"""Finds the places of a request: the candidates of the trees that it may move to.

A *place* is a candidate of a request in one tree. Places in the present state of the cloud depend
only on the kind of the request, so all plans share them. A plan checks them again after it claimed
candidates.

Trees are searched in one order for all kinds, the fullest tree first. The *load* of a tree is its
free capacity, each class in relation to the average inventory of that class.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
import functools
import itertools
from typing import NamedTuple

from placement import capacity
from placement.admin.cloud import Cloud, anchors
from placement.admin.headroom.simulation import Amounts, FreeCapacity, amounts_of
from placement.candidates import eligibility, model, solver
from placement.candidates.model import InventoryKey

# The number of candidates of one tree that are compared.
_CANDIDATES = 16
# The maximum number of kinds whose places are kept.
_KINDS = 4_096

# The amounts by class id that one request group moves, and the traits that it requires.
Group = tuple[tuple[tuple[int, int], ...], frozenset[int]]


class Place(NamedTuple):
    """A candidate of a request in one tree.

    :ivar root_id: the id of the root of the tree
    :ivar amounts: what the candidate takes from each inventory
    :ivar waste: the free capacity that remains; the place with the smallest value fits best
    """

    root_id: int
    amounts: Amounts
    waste: float


class Trees:
    """The provider trees of a cloud in the present state.

    :ivar cloud: the cloud, with the names of classes and providers
    :ivar where: --where as a query with one request group; COMPUTE_STATUS_DISABLED is forbidden
    :ivar same_aggregates: whether the new root has to be in all aggregates of the old roots
    :ivar same_traits: the traits that new providers need if the old one has them
    :ivar anchors: root id -> anchor
    :ivar providers: id -> provider, for all providers of these trees
    :ivar load: root id -> load of each tree that satisfies the conditions, the fullest tree first
    :ivar is_sharing: whether a tree can use sharing providers
    :ivar places: returns the `Places` of a kind of requests; its parameters are those of `Places`,
        without the trees
    """

    def __init__(
        self,
        cloud: Cloud,
        where: model.Query[int],
        same_aggregates: bool,
        same_traits: frozenset[int],
    ) -> None:
        self.cloud = cloud
        self.where = where
        self.same_aggregates = same_aggregates
        self.same_traits = same_traits
        found = anchors(cloud.providers, cloud.sharing_trait)
        self.anchors = {anchor.root.id: anchor for anchor in found}
        self.providers = {provider.id: provider for anchor in found for provider in anchor.tree}
        self._scales = _scales(self.providers.values())
        permitted = [anchor for anchor in found if self._is_permitted(anchor.root)]
        loads = [(self.load_of(anchor), anchor.root.uuid, anchor.root.id) for anchor in permitted]
        self.load = {root_id: load for load, _, root_id in sorted(loads)}
        self.is_sharing = any(anchor.sharing_providers for anchor in permitted)
        self.places: Callable[..., Places] = functools.lru_cache(_KINDS)(
            functools.partial(Places, self)
        )

    def _is_permitted(self, root: model.Provider) -> bool:
        """Whether a root satisfies the conditions that are the same for all requests."""
        (group,) = self.where.groups
        return (
            eligibility.is_anchor(root, self.where)
            and eligibility.satisfies_member_of(root, group)
            and group.forbidden_aggregates.isdisjoint(root.aggregates)
        )

    def root_of(self, provider_id: int) -> int | None:
        """Return the root id of a provider; None if no tree has the provider."""
        provider = self.providers.get(provider_id)
        return provider and provider.root_id

    def inventory(self, key: InventoryKey) -> model.ProviderInventory | None:
        """Return an inventory; None if it does not exist."""
        provider = self.providers.get(key[0])
        return provider and provider.inventories.get(key[1])

    def shares(self, provider_id: int) -> bool:
        """Whether the provider is a sharing provider."""
        provider = self.providers.get(provider_id)
        return provider is not None and self.cloud.sharing_trait in provider.traits

    def size_of(self, amounts: Mapping[int, int]) -> float:
        """Return the sum of amounts by class id, each in relation to the average inventory."""
        return sum(amount / self._scales[class_id] for class_id, amount in amounts.items())

    def load_of(self, anchor: model.Anchor) -> float:
        """Return the load of a tree."""
        return sum(
            max(0, capacity.free(inventory.used, inventory.capacity)) / self._scales[class_id]
            for provider in anchor.tree
            for class_id, inventory in provider.inventories.items()
        )

    def waste(self, anchor: model.Anchor, load: float, amounts: Amounts) -> float:
        """Return the free capacity that a candidate leaves in its tree and in its inventories.

        :param anchor: the tree with its present usage
        :param load: the load of the tree
        """
        scales = self._scales
        providers = {provider.id: provider for provider in anchor.providers}
        left = load
        for (provider_id, class_id), amount in amounts.items():
            provider = providers[provider_id]
            inventory = provider.inventories[class_id]
            after = capacity.free(inventory.used, inventory.capacity) - amount
            left += after / scales[class_id]
            if provider.root_id == anchor.root.id:
                left -= amount / scales[class_id]
        return left


class Places:
    """The places of the requests of one kind. Consumers of one flavor usually have one kind.

    :ivar amounts: the sum of the amounts of all groups, by class id
    :ivar size: the sum of these amounts, each in relation to the average inventory
    :ivar kept: the allocations of the consumer that stay as they are
    :ivar scope: requests with an equal scope have the same permitted trees
    """

    def __init__(
        self,
        trees: Trees,
        groups: tuple[Group, ...],
        kept: tuple[tuple[InventoryKey, int], ...],
        homes: frozenset[int] | None,
        aggregates: frozenset[int],
    ) -> None:
        """Find no place yet.

        :param groups: the request groups
        :param kept: the allocations of the consumer that stay as they are
        :param homes: the ids of the only possible new roots; None if any tree is possible
        :param aggregates: the aggregates that the new root has to be in
        """
        self._trees = trees
        self._groups = groups
        self._prepared = model.PreparedQuery.of(_query(groups, trees.where))
        self.amounts: Counter[int] = Counter()
        for amounts, _ in groups:
            self.amounts.update(dict(amounts))
        self.size = trees.size_of(self.amounts)
        self.kept = Counter(dict(kept))
        # The new tree has to be linked with the sharing providers whose allocations stay.
        links = frozenset(id_ for (id_, _), _ in kept if trees.shares(id_))
        self.scope = homes, aggregates, links
        self._present: Iterator[Place] = self._search()

    def without(self, class_id: int) -> 'Places':
        """Return the places of the requests without the amounts of a class."""
        groups = (
            (tuple(amount for amount in amounts if amount[0] != class_id), traits)
            for amounts, traits in self._groups
        )
        homes, aggregates, _ = self.scope
        remaining = tuple(group for group in groups if group[0])
        return self._trees.places(remaining, tuple(self.kept.items()), homes, aggregates)

    def permits(self, root_id: int) -> bool:
        """Whether the tree of a root satisfies all conditions besides its free capacity."""
        trees = self._trees
        homes, aggregates, links = self.scope
        return (
            root_id in trees.load
            and (homes is None or root_id in homes)
            and aggregates <= trees.providers[root_id].aggregates
            and links.issubset(provider.id for provider in trees.anchors[root_id].providers)
        )

    def roots(self) -> Iterator[int]:
        """Yield the roots of the permitted trees, the fullest tree first."""
        homes, _, _ = self.scope
        return filter(self.permits, self._trees.load if homes is None else sorted(homes))

    def present(self) -> Iterator[Place]:
        """Yield the best place of each tree that has one in the present state of the cloud."""
        # The trees are searched only once, and only as far as a caller needs them.
        self._present, found = itertools.tee(self._present)
        return found

    def _search(self) -> Iterator[Place]:
        trees = self._trees
        for root_id in self.roots():
            if place := self._best(trees.anchors[root_id], trees.load[root_id]):
                yield place

    def now(self, root_id: int, free: FreeCapacity, away: frozenset[int]) -> Place | None:
        """Return the best place of a tree after the claims of a plan; None if it has none.

        :param away: the roots of the trees whose providers must not be used
        """
        if root_id in away or not self.permits(root_id):
            return None
        anchor = free.current(self._trees.anchors[root_id])
        left = tuple(one for one in anchor.sharing_providers if one.root_id not in away)
        anchor = anchor._replace(sharing_providers=left)
        return self._best(anchor, self._trees.load_of(anchor))

    def _best(self, anchor: model.Anchor, load: float) -> Place | None:
        prepared = self._prepared
        candidates = (
            amounts_of(prepared.slots, binding) for binding in solver.bindings(prepared, anchor)
        )
        places = (
            Place(anchor.root.id, amounts, self._trees.waste(anchor, load, amounts))
            for amounts in itertools.islice(filter(self._fits_kept, candidates), _CANDIDATES)
        )
        return min(places, key=lambda place: place.waste, default=None)

    def _fits_kept(self, amounts: Amounts) -> bool:
        """Whether the inventories permit the amounts together with the kept allocations.

        A new amount and a kept one of the same inventory are one allocation. The kept amount
        satisfies min_unit and step_size, so the sum does if the new amount does. The usage of the
        inventory includes the kept amount. So only max_unit limits the sum further.
        """
        providers = self._trees.providers
        return all(
            self.kept[key] + amounts[key] <= providers[key[0]].inventories[key[1]].max_unit
            for key in self.kept.keys() & amounts.keys()
        )


def _query(groups: tuple[Group, ...], where: model.Query[int]) -> model.Query[int]:
    """Return the query whose candidates are the places of a request.

    One group is the unsuffixed group, which several providers can serve together.
    """
    (conditions,) = where.groups
    return model.Query(
        groups=tuple(
            model.Group(
                suffix=str(number) if len(groups) > 1 else '',
                amounts=amounts,
                required=conditions.required + tuple(frozenset({id_}) for id_ in sorted(traits)),
                forbidden=conditions.forbidden,
            )
            for number, (amounts, traits) in enumerate(groups, 1)
        )
    )


def _scales(providers: Iterable[model.Provider]) -> Mapping[int, float]:
    """Return the average capacity of the inventories of each class; 1 for other classes."""
    capacities: dict[int, list[int]] = defaultdict(list)
    for provider in providers:
        for class_id, inventory in provider.inventories.items():
            capacities[class_id].append(max(0, int(inventory.capacity)))
    averages = {id_: sum(of_class) / len(of_class) for id_, of_class in capacities.items()}
    return defaultdict(lambda: 1.0, {id_: one for id_, one in averages.items() if one})
