"""What a drain is, by the definitions of the guide, and an exact search; slow, for small worlds.

The module shares the definition of candidates with other tests (`naive`), and only the types of
the code under test.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import itertools

from placement.admin.drain.requests import Consumer
from placement.candidates import model
from placement.tests.unit.admin.drain.clouds import Case
from placement.tests.worlds import naive

Key = tuple[int, int]
# What a consumer takes from each inventory in a new place.
Amounts = frozenset[tuple[Key, int]]


class Definition:
    """The possible places of the consumers of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._cloud = case.cloud
        self._used: dict[Key, int] = Counter()
        for consumer in case.consumers:
            for provider_id, class_id, amount in consumer.allocations:
                self._used[provider_id, class_id] += amount

    def can_drain(self) -> bool:
        """Whether all consumers can move, by trying all combinations of their places."""
        options = [sorted(self.places(one), key=sorted) for one in self.case.affected]
        free = {
            (provider.id, class_id): int(inventory.capacity) - inventory.used
            for provider in self._cloud.providers.values()
            for class_id, inventory in provider.inventories.items()
        }
        options.sort(key=len)
        return _assign(options, free, set())

    def is_nowhere(self, consumer: Consumer) -> bool:
        """Whether a consumer has no place even if all other affected consumers vanish."""
        others = (one for one in self.case.affected if one is not consumer)
        return not self.places(consumer, others)

    def exceeds_sum(self) -> bool:
        """Whether a class of all consumers exceeds the free capacity of the permitted trees."""
        requested: Counter[int] = Counter()
        providers: dict[int, model.Provider] = {}
        leaving: Counter[Key] = Counter()
        for consumer in self.case.affected:
            for provider_id, class_id, amount in self._old(consumer):
                requested[class_id] += amount
                leaving[provider_id, class_id] += amount
            for anchor in self._anchors(consumer):
                providers.update({p.id: p for p in anchor.providers})
        return any(
            amount
            > sum(
                max(0, int(s.capacity) - s.used + leaving[p.id, class_id])
                for p in providers.values()
                for s in [p.inventories.get(class_id)]
                if s
            )
            for class_id, amount in requested.items()
        )

    def places(self, consumer: Consumer, vanishing: Iterable[Consumer] = ()) -> set[Amounts]:
        """Return all places of a consumer in the present state, without other new places."""
        old, kept = self._old(consumer), self._kept(consumer)
        if not all(self._permits(p, c, n) for p, c, n in kept):
            return set()
        used = Counter(self._used)
        for one in vanishing:
            for provider_id, class_id, amount in one.allocations:
                used[provider_id, class_id] -= amount
        query = self._query(old)
        slots = model.slots_of(query)
        found = set()
        for anchor in self._anchors(consumer):
            for binding in naive.solve(query, _with_usage(anchor, used)):
                amounts: Counter[Key] = Counter()
                for slot, provider_id in zip(slots, binding, strict=True):
                    for class_id, amount in slot.amounts:
                        amounts[provider_id, class_id] += amount
                merged = Counter(amounts)
                for provider_id, class_id, amount in kept:
                    merged[provider_id, class_id] += amount
                if all(self._permits(*key, n) for key, n in merged.items()):
                    found.add(frozenset(amounts.items()))
        return found

    def _away(self, consumer: Consumer) -> frozenset[int]:
        if self.case.roots is not None:
            return self.case.roots
        ids = [id_ for id_, _, _ in consumer.allocations]
        hosts = [id_ for id_ in ids if not self._shares(id_)]
        return frozenset(self._cloud.providers[id_].root_id for id_ in hosts or ids)

    def _old(self, consumer: Consumer) -> list[tuple[int, int, int]]:
        away, providers = self._away(consumer), self._cloud.providers
        return [one for one in consumer.allocations if providers[one[0]].root_id in away]

    def _kept(self, consumer: Consumer) -> list[tuple[int, int, int]]:
        old = self._old(consumer)
        return [one for one in consumer.allocations if one not in old]

    def _shares(self, provider_id: int) -> bool:
        return self._cloud.sharing_id in self._cloud.providers[provider_id].traits

    def _permits(self, provider_id: int, class_id: int, amount: int) -> bool:
        inventory = self._cloud.providers[provider_id].inventories.get(class_id)
        return (
            inventory is not None
            and inventory.min_unit <= amount <= inventory.max_unit
            and amount % inventory.step_size == 0
        )

    def _query(self, old: Iterable[tuple[int, int, int]]) -> model.Query[int]:
        conditions = self.case.conditions
        groups = []
        for provider_id, rows in itertools.groupby(old, key=lambda one: one[0]):
            traits = self._cloud.providers[provider_id].traits & conditions.same_traits
            groups.append(
                model.Group(
                    suffix=f'_{provider_id}',
                    amounts=tuple((class_id, amount) for _, class_id, amount in rows),
                    required=(*conditions.where.required, *(frozenset({t}) for t in traits)),
                    forbidden=conditions.where.forbidden,
                )
            )
        if len(groups) == 1:
            groups = [dataclasses.replace(groups[0], suffix='')]
        return model.Query(tuple(groups))

    def _anchors(self, consumer: Consumer) -> Iterator[model.Anchor]:
        """Yield the trees that a consumer may move to, without sharing providers to leave."""
        conditions, cloud = self.case.conditions, self._cloud
        away, old, kept = self._away(consumer), self._old(consumer), self._kept(consumer)
        homes = {cloud.providers[p].root_id for p, _, _ in kept if not self._shares(p)}
        old_roots = {cloud.providers[p].root_id for p, _, _ in old}
        for anchor in cloud.anchors.values():
            root = anchor.root
            if (
                root.id in away
                or not conditions.root_required <= root.traits
                or conditions.root_forbidden & root.traits
                or not all(root.aggregates & any_of for any_of in conditions.where.member_of)
                or conditions.where.forbidden_aggregates & root.aggregates
            ):
                continue
            if conditions.same_aggregates and not all(
                cloud.anchors[old_root].root.aggregates <= root.aggregates for old_root in old_roots
            ):
                continue
            if homes and any(self._shares(p) for p, _, _ in old) and root.id not in homes:
                continue
            usable = {p.id for p in anchor.providers}
            if not all(p in usable for p, _, _ in kept if self._shares(p)):
                continue
            left = tuple(p for p in anchor.sharing_providers if p.root_id not in away)
            yield anchor._replace(sharing_providers=left)


def _with_usage(anchor: model.Anchor, used: Mapping[Key, int]) -> model.Anchor:
    def changed(provider: model.Provider) -> model.Provider:
        inventories = {
            class_id: inventory._replace(used=used[provider.id, class_id])
            for class_id, inventory in provider.inventories.items()
        }
        return provider._replace(inventories=inventories)

    return anchor._replace(
        root=changed(anchor.root),
        tree=tuple(map(changed, anchor.tree)),
        sharing_providers=tuple(map(changed, anchor.sharing_providers)),
    )


def _assign(options: list[list[Amounts]], free: dict[Key, int], dead: set[object]) -> bool:
    """Whether each of the remaining consumers can have one of its places."""
    if not options:
        return True
    state = len(options), frozenset(free.items())
    if state in dead:
        return False
    for place in options[0]:
        if all(free[key] >= amount for key, amount in place):
            after = dict(free)
            for key, amount in place:
                after[key] -= amount
            if _assign(options[1:], after, dead):
                return True
    dead.add(state)
    return False
