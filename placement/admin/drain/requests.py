"""Splits the allocations of a consumer into request groups and allocations to keep.

For each provider that the consumer has to leave, there is one request group with the amounts that
the consumer has allocated from this provider. All other allocations of the consumer stay as they
are.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import os_resource_classes as orc

from placement import capacity
from placement.candidates import model

_CPUS = (orc.VCPU, orc.PCPU)


class Allocation(NamedTuple):
    """The amount that a consumer has allocated from an inventory."""

    provider_id: int
    class_id: int
    amount: int


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
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class Cloud:
    """The provider trees in one snapshot of the database.

    :ivar anchors: root id -> anchor
    :ivar providers: id -> provider
    :ivar sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has it
    :ivar names: UUID of a root provider -> name
    :ivar classes: resource class id -> name
    """

    anchors: Mapping[int, model.Anchor]
    providers: Mapping[int, model.Provider]
    sharing_id: int | None
    names: Mapping[str, str]
    classes: Mapping[int, str]

    def root_of(self, provider_id: int) -> int | None:
        """Return the root id of a provider; None if the cloud does not have the provider."""
        provider = self.providers.get(provider_id)
        return provider and provider.root_id

    def shares(self, provider_id: int) -> bool:
        """Whether the provider is a sharing provider."""
        provider = self.providers.get(provider_id)
        return provider is not None and self.sharing_id in provider.traits

    def is_pool(self, root_id: int) -> bool:
        """Whether the tree of a sharing provider is no host, because it has no CPUs."""
        return self.shares(root_id) and not any(
            self.classes.get(class_id) in _CPUS
            for provider in self.anchors[root_id].tree
            for class_id in provider.inventories
        )


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the options of the command require of the new trees.

    :ivar root_required: the traits of `root_required` in --where
    :ivar root_forbidden: the forbidden ones, and COMPUTE_STATUS_DISABLED
    :ivar where: `required` of --where, which each request group gets, and `member_of`, which
        applies to the new root
    :ivar same_aggregates: whether the new root has to be in all aggregates of the old roots
    :ivar same_traits: the traits that new providers need if the old one has them
    """

    root_required: frozenset[int] = frozenset()
    root_forbidden: frozenset[int] = frozenset()
    where: model.Group[int] = field(default_factory=lambda: model.Group(''))
    same_aggregates: bool = False
    same_traits: frozenset[int] = frozenset()


class Kind(NamedTuple):
    """What determines the places of a request. Consumers of one flavor usually have one kind.

    :ivar groups: for each request group, the amounts by class id, and the required traits
    :ivar kept: the allocations of the consumer that stay as they are
    :ivar homes: the ids of the only possible new roots; None if any tree is possible
    :ivar aggregates: the aggregates that the new root has to be in
    """

    groups: tuple[tuple[tuple[tuple[int, int], ...], frozenset[int]], ...]
    kept: tuple[Allocation, ...] = ()
    homes: frozenset[int] | None = None
    aggregates: frozenset[int] = frozenset()

    @property
    def amounts(self) -> Counter[int]:
        """The sum of the amounts of all groups, by class id."""
        sums: Counter[int] = Counter()
        for amounts, _ in self.groups:
            for class_id, amount in amounts:
                sums[class_id] += amount
        return sums

    def without(self, class_id: int) -> 'Kind':
        """Return the kind of a request without the amounts of a class."""
        groups = (
            (tuple(amount for amount in amounts if amount[0] != class_id), traits)
            for amounts, traits in self.groups
        )
        return self._replace(groups=tuple(group for group in groups if group[0]))


class Request(NamedTuple):
    """A consumer that has to move.

    :ivar origins: the ids of the roots that the consumer has to leave
    :ivar away: the ids of the roots of all trees that it must not use
    :ivar is_refused: whether the API would refuse the allocations to keep, or a resource class
    """

    consumer: Consumer
    kind: Kind
    origins: frozenset[int]
    away: frozenset[int]
    is_refused: bool


def query_of(kind: Kind, conditions: Conditions) -> model.Query[int]:
    """Return the query whose candidates are the places of a request.

    One group is the unsuffixed group, which several providers can serve together.
    """
    where = conditions.where
    suffixes = [''] if len(kind.groups) == 1 else [str(n) for n in range(1, len(kind.groups) + 1)]
    return model.Query(
        groups=tuple(
            model.Group(
                suffix=suffix,
                amounts=amounts,
                required=where.required + tuple(frozenset({trait}) for trait in sorted(traits)),
                forbidden=where.forbidden,
            )
            for suffix, (amounts, traits) in zip(suffixes, kind.groups, strict=True)
        ),
        root_required=conditions.root_required,
        root_forbidden=conditions.root_forbidden,
    )


def requests_of(
    cloud: Cloud,
    conditions: Conditions,
    consumers: Iterable[Consumer],
    away: frozenset[int] | None,
) -> list[Request]:
    """Return the requests of the consumers with allocations from the drained trees.

    :param away: the ids of the roots of the drained trees; None if each consumer has to leave the
        trees where it is (see `trees_of`)
    """
    return [
        _request(cloud, conditions, one, trees_of(cloud, one) if away is None else away)
        for one in consumers
    ]


def trees_of(cloud: Cloud, consumer: Consumer) -> frozenset[int]:
    """Return the root ids of the trees where a consumer is.

    A tree from which the consumer uses only sharing providers is not among them, unless it uses
    nothing else.
    """
    ids = {
        allocation.provider_id
        for allocation in consumer.allocations
        if allocation.provider_id in cloud.providers
    }
    used = {id_ for id_ in ids if not cloud.shares(id_)} or ids
    return frozenset(cloud.providers[id_].root_id for id_ in used)


def _request(
    cloud: Cloud, conditions: Conditions, consumer: Consumer, away: frozenset[int]
) -> Request:
    providers = cloud.providers
    old: dict[int, list[tuple[int, int]]] = defaultdict(list)
    kept = []
    for allocation in consumer.allocations:
        provider = providers.get(allocation.provider_id)
        if provider is not None and provider.root_id in away:
            old[provider.id].append((allocation.class_id, allocation.amount))
        else:
            kept.append(allocation)
    origins = frozenset(providers[id_].root_id for id_ in old)
    groups = [
        (tuple(sorted(amounts)), providers[id_].traits & conditions.same_traits)
        for id_, amounts in old.items()
    ]
    # In this order, equal groups of different consumers are one kind.
    groups.sort(key=lambda group: (group[0], sorted(group[1])))
    kind = Kind(
        groups=tuple(groups),
        kept=tuple(kept),
        homes=_homes(cloud, old, kept) if kept else None,
        aggregates=_aggregates(cloud, origins) if conditions.same_aggregates else frozenset(),
    )
    is_refused = not (
        all(_is_permitted(allocation, providers) for allocation in kept)
        and all(allocation.class_id in cloud.classes for allocation in consumer.allocations)
    )
    return Request(consumer, kind, origins, away, is_refused)


def _homes(cloud: Cloud, old: Collection[int], kept: Sequence[Allocation]) -> frozenset[int] | None:
    """Return the roots of the trees that a consumer of a drained sharing provider stays in.

    :param old: the ids of the providers to leave
    :returns: None if the consumer leaves no sharing provider, or uses nothing but sharing providers
    """
    if not any(cloud.shares(id_) for id_ in old):
        return None
    homes = frozenset(
        cloud.providers[allocation.provider_id].root_id
        for allocation in kept
        if allocation.provider_id in cloud.providers and not cloud.shares(allocation.provider_id)
    )
    return homes or None


def _aggregates(cloud: Cloud, origins: Iterable[int]) -> frozenset[int]:
    return frozenset().union(*(cloud.anchors[root].root.aggregates for root in origins))


def _is_permitted(allocation: Allocation, providers: Mapping[int, model.Provider]) -> bool:
    """Whether a request may repeat an allocation. Its capacity is not checked (see `claims`)."""
    provider = providers.get(allocation.provider_id)
    inventory = provider and provider.inventories.get(allocation.class_id)
    if not inventory:
        return False
    violation = capacity.unit_violation(
        allocation.amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
    return violation is None
