"""Splits the allocations of a consumer into a request, and finds the places of the request.

For each provider that the consumer has to leave, there is one request group with the amounts that
the consumer has allocated from this provider. All other allocations of the consumer stay as they
are.

A *place* is a candidate of a request in one tree. Places in the present state of the cloud depend
only on the kind of the request, so all plans share them. A plan checks them again after it claimed
candidates.

Trees are searched in one order for all kinds, the fullest tree first. The *load* of a tree is its
free capacity, each class in relation to the average inventory of that class.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import fnmatch
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


class Consumer(NamedTuple):
    """A consumer with all its allocations.

    The type is None if the consumer has none; the project and the user are None if they do not
    exist.
    """

    uuid: str
    type: str | None
    project: str | None
    user: str | None
    generation: int
    allocations: Amounts


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
    """The provider trees of a cloud in the present state, with the conditions of the command line.

    :ivar cloud: all of the cloud, except for the usage of projects
    :ivar where: --where as a query with one request group; COMPUTE_STATUS_DISABLED is forbidden
    :ivar same_aggregates: whether the new root has to be in all aggregates of the old roots
    :ivar same_traits: the traits that new providers need if the old one has them
    :ivar anchors: root id -> anchor
    :ivar providers: id -> provider, for all providers of these trees
    :ivar roots: the id of each of these providers -> the id of its root
    :ivar sharing: the ids of the sharing providers among them
    :ivar inventories: their inventories
    :ivar scales: class id -> the average capacity of the inventories; 1 for other classes
    :ivar fullest: the root ids of the trees that satisfy the conditions, the fullest tree first
    :ivar is_sharing: whether a tree can use sharing providers
    :ivar places: returns the `Places` of a kind of requests; its parameters are those of `Places`,
        without the trees
    """

    def __init__(
        self,
        cloud: Cloud,
        where: model.Query[int],
        same_aggregates: bool = False,
        same_traits: Sequence[str] = (),
    ) -> None:
        """Find the permitted trees.

        :param where: the result of `reading.conditions`
        :param same_traits: the patterns of --same-traits
        """
        # A root with this trait is no place for a consumer, so no consumer needs the trait.
        disabled = frozenset(filter(None, [cloud.disabled_trait]))
        where = replace(where, root_forbidden=where.root_forbidden | disabled)
        self.cloud = cloud
        self.where = where
        self.same_aggregates = same_aggregates
        traits = cloud.ids.traits
        same = [name for glob in same_traits for name in fnmatch.filter(traits, glob)]
        self.same_traits = frozenset(traits[name] for name in same) - disabled
        found = anchors(cloud.providers, cloud.sharing_trait)
        every = [provider for anchor in found for provider in anchor.tree]
        self.anchors = {anchor.root.id: anchor for anchor in found}
        self.providers = {provider.id: provider for provider in every}
        self.roots = {provider.id: provider.root_id for provider in every}
        self.sharing = {one.id for one in every if cloud.sharing_trait in one.traits}
        self.inventories = {
            (provider.id, class_id): inventory
            for provider in every
            for class_id, inventory in provider.inventories.items()
        }
        self.scales = _scales(self.inventories)
        permitted = [anchor for anchor in found if _is_permitted(anchor.root, where)]
        permitted.sort(key=lambda anchor: (self.load_of(anchor), anchor.root.uuid))
        self.fullest = {anchor.root.id: None for anchor in permitted}
        self.is_sharing = any(anchor.sharing_providers for anchor in permitted)
        self.places: Callable[..., Places] = functools.lru_cache(_KINDS)(
            functools.partial(Places, self)
        )

    def load_of(self, anchor: model.Anchor) -> float:
        """Return the load of a tree."""
        return sum(
            max(0, capacity.free(inventory.used, inventory.capacity)) / self.scales[class_id]
            for provider in anchor.tree
            for class_id, inventory in provider.inventories.items()
        )

    def waste(self, anchor: model.Anchor, load: float, amounts: Amounts) -> float:
        """Return the free capacity that a candidate leaves in its tree and in its inventories.

        :param anchor: the tree with its present usage
        :param load: the load of the tree
        """
        providers = {provider.id: provider for provider in anchor.providers}
        left = load
        for (provider_id, class_id), amount in amounts.items():
            provider, scale = providers[provider_id], self.scales[class_id]
            inventory = provider.inventories[class_id]
            left += (capacity.free(inventory.used, inventory.capacity) - amount) / scale
            if provider.root_id == anchor.root.id:
                left -= amount / scale
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
        self.amounts = sum((Counter(dict(amounts)) for amounts, _ in groups), Counter[int]())
        self.size = sum(amount / trees.scales[id_] for id_, amount in self.amounts.items())
        self.kept = Counter(dict(kept))
        # The new tree has to be linked with the sharing providers whose allocations stay.
        links = frozenset(id_ for (id_, _), _ in kept if id_ in trees.sharing)
        self.scope = homes, aggregates, links
        unchanged = FreeCapacity(trees.providers)
        found = (self.now(root_id, unchanged, frozenset()) for root_id in self.roots())
        self._present: Iterator[Place] = filter(None, found)

    def without(self, class_id: int) -> 'Places':
        """Return the places of the requests without the amounts of a class."""
        remaining = tuple(
            (left, traits)
            for amounts, traits in self._groups
            if (left := tuple(amount for amount in amounts if amount[0] != class_id))
        )
        homes, aggregates, _ = self.scope
        return self._trees.places(remaining, tuple(self.kept.items()), homes, aggregates)

    def permits(self, root_id: int) -> bool:
        """Whether the tree of a root satisfies all conditions besides its free capacity."""
        trees = self._trees
        homes, aggregates, links = self.scope
        return (
            root_id in trees.fullest
            and (homes is None or root_id in homes)
            and aggregates <= trees.providers[root_id].aggregates
            and links.issubset(provider.id for provider in trees.anchors[root_id].providers)
        )

    def roots(self) -> Iterator[int]:
        """Yield the roots of the permitted trees, the fullest tree first."""
        homes, _, _ = self.scope
        return filter(self.permits, self._trees.fullest if homes is None else sorted(homes))

    def present(self) -> Iterator[Place]:
        """Yield the best place of each tree that has one in the present state of the cloud."""
        # The trees are searched only once, and only as far as a caller needs them.
        self._present, found = itertools.tee(self._present)
        return found

    def now(self, root_id: int, free: FreeCapacity, away: frozenset[int]) -> Place | None:
        """Return the best place of a tree after the claims of a plan; None if it has none.

        :param away: the roots of the trees whose providers must not be used
        """
        if root_id in away or not self.permits(root_id):
            return None
        trees, prepared = self._trees, self._prepared
        anchor = free.current(trees.anchors[root_id])
        left = tuple(one for one in anchor.sharing_providers if one.root_id not in away)
        anchor = anchor._replace(sharing_providers=left)
        load = trees.load_of(anchor)
        candidates = (
            amounts_of(prepared.slots, binding) for binding in solver.bindings(prepared, anchor)
        )
        places = (
            Place(root_id, amounts, trees.waste(anchor, load, amounts))
            for amounts in itertools.islice(filter(self._fits_kept, candidates), _CANDIDATES)
        )
        return min(places, key=lambda place: place.waste, default=None)

    def _fits_kept(self, amounts: Amounts) -> bool:
        """Whether the inventories permit the amounts together with the kept allocations.

        A new amount and a kept one of the same inventory are one allocation. The kept amount
        satisfies min_unit and step_size, so the sum does if the new amount does. The usage of the
        inventory includes the kept amount. So only max_unit limits the sum further.
        """
        return all(
            self.kept[key] + amounts[key] <= self._trees.inventories[key].max_unit
            for key in self.kept.keys() & amounts.keys()
        )


def _is_permitted(root: model.Provider, where: model.Query[int]) -> bool:
    """Whether a root satisfies the conditions that are the same for all requests."""
    (group,) = where.groups
    return (
        eligibility.is_anchor(root, where)
        and eligibility.satisfies_member_of(root, group)
        and group.forbidden_aggregates.isdisjoint(root.aggregates)
    )


def _query(groups: tuple[Group, ...], where: model.Query[int]) -> model.Query[int]:
    """Return the query whose candidates are the places of a request.

    One group is the unsuffixed group, which several providers can serve together.
    """
    (conditions,) = where.groups
    return model.Query(
        tuple(
            model.Group(
                suffix=str(number) if len(groups) > 1 else '',
                amounts=amounts,
                required=conditions.required + tuple(frozenset({id_}) for id_ in sorted(traits)),
                forbidden=conditions.forbidden,
            )
            for number, (amounts, traits) in enumerate(groups, 1)
        )
    )


def _scales(
    inventories: Mapping[InventoryKey, model.ProviderInventory],
) -> Mapping[int, float]:
    capacities: dict[int, list[int]] = defaultdict(list)
    for (_, class_id), inventory in inventories.items():
        capacities[class_id].append(max(0, int(inventory.capacity)))
    averages = {id_: sum(of_class) / len(of_class) for id_, of_class in capacities.items()}
    return defaultdict(lambda: 1.0, {id_: one for id_, one in averages.items() if one})


# Requests -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A consumer that has to move.

    :ivar places: the places of all requests of its kind
    :ivar origins: the ids of the roots that the consumer has to leave
    :ivar away: the ids of the roots of all trees that it must not use
    """

    consumer: Consumer
    places: Places
    origins: frozenset[int]
    away: frozenset[int]


def request_of(trees: Trees, consumer: Consumer, away: frozenset[int] | None) -> Request:
    """Return the request of a consumer with allocations from the drained trees.

    :param away: the ids of the roots of the drained trees; None if the consumer has to leave the
        trees where it is. A tree from which it uses only sharing providers is not among these,
        unless it uses nothing else
    """
    providers = trees.providers
    if away is None:
        used = {id_ for id_, _ in consumer.allocations} & trees.roots.keys()
        away = frozenset(trees.roots[id_] for id_ in used - trees.sharing or used)
    old: dict[int, list[tuple[int, int]]] = defaultdict(list)
    kept: dict[InventoryKey, int] = {}
    for (provider_id, class_id), amount in consumer.allocations.items():
        if trees.roots.get(provider_id) in away:
            old[provider_id].append((class_id, amount))
        else:
            kept[provider_id, class_id] = amount
    groups = [
        (tuple(sorted(amounts)), providers[id_].traits & trees.same_traits)
        for id_, amounts in old.items()
    ]
    # In this order, equal groups of different consumers are one kind.
    groups.sort(key=lambda group: (group[0], sorted(group[1])))
    origins = frozenset(trees.roots[id_] for id_ in old)
    aggregates = frozenset[int]()
    if trees.same_aggregates:
        aggregates = aggregates.union(*(providers[root_id].aggregates for root_id in origins))
    homes = _homes(trees, consumer.allocations, old, kept)
    places = trees.places(tuple(groups), tuple(kept.items()), homes, aggregates)
    return Request(consumer, places, origins, away)


def _homes(
    trees: Trees, allocations: Amounts, old: Iterable[int], kept: Amounts
) -> frozenset[int] | None:
    """Return the roots of the trees that a consumer can move to.

    :param allocations: all allocations of the consumer
    :param old: the ids of the providers to leave
    :param kept: the allocations to keep
    :returns: None if it can move to any tree. None at all are possible if the API would refuse the
        allocations. If the consumer leaves a sharing provider, it stays in the trees whose other
        providers it uses
    """
    known = all(class_id in trees.cloud.classes for _, class_id in allocations)
    if not (known and all(_is_accepted(trees, key, amount) for key, amount in kept.items())):
        return frozenset()
    if trees.sharing.isdisjoint(old):
        return None
    hosts = {id_ for id_, _ in kept} - trees.sharing
    return frozenset(trees.roots[id_] for id_ in hosts) or None


def _is_accepted(trees: Trees, key: InventoryKey, amount: int) -> bool:
    """Whether a request may repeat an allocation. Its capacity is not checked (see `claims`)."""
    inventory = trees.inventories.get(key)
    return inventory is not None and not capacity.unit_violation(
        amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
