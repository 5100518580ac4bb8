"""Splits the allocations of a consumer into request groups and allocations to keep.

For each provider that the consumer has to leave, there is one request group with the amounts that
the consumer has allocated from this provider. All other allocations of the consumer stay as they
are.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from placement import capacity
from placement.admin.drain.places import Places, Trees
from placement.admin.headroom.simulation import Amounts
from placement.candidates.model import InventoryKey


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
        trees where it is
    """
    providers = trees.providers
    if away is None:
        away = _trees_of(trees, consumer)
    old: dict[int, list[tuple[int, int]]] = defaultdict(list)
    kept: dict[InventoryKey, int] = {}
    for (provider_id, class_id), amount in consumer.allocations.items():
        if trees.root_of(provider_id) in away:
            old[provider_id].append((class_id, amount))
        else:
            kept[provider_id, class_id] = amount
    groups = [
        (tuple(sorted(amounts)), providers[id_].traits & trees.same_traits)
        for id_, amounts in old.items()
    ]
    # In this order, equal groups of different consumers are one kind.
    groups.sort(key=lambda group: (group[0], sorted(group[1])))
    origins = frozenset(providers[id_].root_id for id_ in old)
    aggregates = frozenset[int]()
    if trees.same_aggregates:
        aggregates = aggregates.union(*(providers[root_id].aggregates for root_id in origins))
    homes = _homes(trees, old, kept)
    if not all(class_id in trees.cloud.classes for _, class_id in consumer.allocations):
        homes = frozenset()
    places = trees.places(tuple(groups), tuple(kept.items()), homes, aggregates)
    return Request(consumer, places, origins, away)


def _trees_of(trees: Trees, consumer: Consumer) -> frozenset[int]:
    """Return the root ids of the trees where a consumer is.

    A tree from which the consumer uses only sharing providers is not among them, unless it uses
    nothing else.
    """
    ids = {id_ for id_, _ in consumer.allocations if id_ in trees.providers}
    used = {id_ for id_ in ids if not trees.shares(id_)} or ids
    return frozenset(trees.providers[id_].root_id for id_ in used)


def _homes(trees: Trees, old: Collection[int], kept: Amounts) -> frozenset[int] | None:
    """Return the roots of the trees that a consumer can move to.

    :param old: the ids of the providers to leave
    :returns: None if it can move to any tree. None at all are possible if the API would refuse the
        allocations to keep. If the consumer leaves a sharing provider, it stays in the trees whose
        other providers it uses
    """
    if not all(_is_permitted(trees, key, amount) for key, amount in kept.items()):
        return frozenset()
    if not any(map(trees.shares, old)):
        return None
    hosts = (trees.providers[id_] for id_, _ in kept if not trees.shares(id_))
    return frozenset(host.root_id for host in hosts) or None


def _is_permitted(trees: Trees, key: InventoryKey, amount: int) -> bool:
    """Whether a request may repeat an allocation. Its capacity is not checked (see `claims`)."""
    inventory = trees.inventory(key)
    if inventory is None:
        return False
    violation = capacity.unit_violation(
        amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
    return violation is None
