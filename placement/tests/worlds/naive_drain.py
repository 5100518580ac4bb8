"""What a drain is, by the definitions of the guide, and an exact search; slow, for small worlds."""

from collections import Counter
from collections.abc import Iterable, Iterator
import dataclasses
import fnmatch
import itertools
from urllib import parse

from placement.candidates import model, request
from placement.tests import worlds
from placement.tests.worlds import naive
from placement.tests.worlds.drains import Allocation, Case
from placement.tests.worlds.naive_headroom import Key, with_providers

# What a consumer takes from each inventory in a new place.
Amounts = frozenset[tuple[Key, int]]


class Definition:
    """The possible places of the consumers of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._world = case.world
        self._providers = {provider.id: provider for provider in case.world.providers}
        self._used: Counter[Key] = Counter()
        for consumer in case.consumers:
            self._used.update(self._amounts(consumer))
        ids = case.world.ids
        # A query has to request resources.
        pairs = parse.parse_qsl(f'resources=VCPU:1&{case.where}')
        query = request.with_ids(request.parse(pairs, worlds.NEWEST), ids)
        (self._where,) = query.groups
        disabled = ids.traits.get(worlds.trait('DISABLED'), -1)
        self._required, self._forbidden = query.root_required, query.root_forbidden | {disabled}
        self._same_traits = {
            id_
            for name, id_ in ids.traits.items()
            if any(fnmatch.fnmatchcase(name, glob) for glob in case.same_traits)
        } - {disabled}

    def can_drain(self) -> bool:
        """Whether all consumers can move, by trying all combinations of their places."""
        options = [sorted(self.places(one), key=sorted) for one in self.case.affected]
        free = {
            (provider.id, class_id): int(inventory.capacity) - inventory.used
            for provider in self._world.providers
            for class_id, inventory in provider.inventories.items()
        }
        options.sort(key=len)
        return _assign(options, free, set())

    def is_nowhere(self, consumer: worlds.Consumer) -> bool:
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

    def places(
        self, consumer: worlds.Consumer, vanishing: Iterable[worlds.Consumer] = ()
    ) -> set[Amounts]:
        """Return all places of a consumer in the present state, without other new places."""
        old, kept = self._old(consumer), self._kept(consumer)
        if not all(self._permits(p, c, n) for p, c, n in kept):
            return set()
        used = Counter(self._used)
        for one in vanishing:
            used.subtract(self._amounts(one))

        def with_usage(provider: model.Provider) -> model.Provider:
            inventories = {
                class_id: inventory._replace(used=used[provider.id, class_id])
                for class_id, inventory in provider.inventories.items()
            }
            return provider._replace(inventories=inventories)

        query = self._query(old)
        slots = model.slots_of(query)
        found = set()
        for anchor in self._anchors(consumer):
            for binding in naive.solve(query, with_providers(anchor, with_usage)):
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

    def _amounts(self, consumer: worlds.Consumer) -> dict[Key, int]:
        found = self.case.allocations(consumer)
        return {(one.provider_id, one.class_id): one.amount for one in found}

    def _root(self, provider_id: int) -> int:
        return self._providers[provider_id].root_id

    def _away(self, consumer: worlds.Consumer) -> frozenset[int]:
        if self.case.roots is not None:
            return self.case.roots
        ids = [one.provider_id for one in self.case.allocations(consumer)]
        hosts = [id_ for id_ in ids if not self._shares(id_)]
        return frozenset(map(self._root, hosts or ids))

    def _old(self, consumer: worlds.Consumer) -> list[Allocation]:
        away = self._away(consumer)
        return [
            one for one in self.case.allocations(consumer) if self._root(one.provider_id) in away
        ]

    def _kept(self, consumer: worlds.Consumer) -> list[Allocation]:
        old = self._old(consumer)
        return [one for one in self.case.allocations(consumer) if one not in old]

    def _shares(self, provider_id: int) -> bool:
        return self._world.sharing_id in self._providers[provider_id].traits

    def _permits(self, provider_id: int, class_id: int, amount: int) -> bool:
        inventory = self._providers[provider_id].inventories.get(class_id)
        return (
            inventory is not None
            and inventory.min_unit <= amount <= inventory.max_unit
            and amount % inventory.step_size == 0
        )

    def _query(self, old: Iterable[Allocation]) -> model.Query[int]:
        groups = []
        for provider_id, rows in itertools.groupby(old, key=lambda one: one.provider_id):
            traits = self._providers[provider_id].traits & self._same_traits
            groups.append(
                model.Group(
                    suffix=f'_{provider_id}',
                    amounts=tuple((class_id, amount) for _, class_id, amount in rows),
                    required=(*self._where.required, *(frozenset({t}) for t in traits)),
                    forbidden=self._where.forbidden,
                )
            )
        if len(groups) == 1:
            groups = [dataclasses.replace(groups[0], suffix='')]
        return model.Query(tuple(groups))

    def _anchors(self, consumer: worlds.Consumer) -> Iterator[model.Anchor]:
        """Yield the trees that a consumer may move to, without sharing providers to leave."""
        away, old, kept = self._away(consumer), self._old(consumer), self._kept(consumer)
        homes = {self._root(p) for p, _, _ in kept if not self._shares(p)}
        old_roots = [self._providers[self._root(p)] for p, _, _ in old]
        for anchor in self._world.anchors:
            root = anchor.root
            if (
                root.id in away
                or not self._required <= root.traits
                or self._forbidden & root.traits
                or not all(root.aggregates & any_of for any_of in self._where.member_of)
                or self._where.forbidden_aggregates & root.aggregates
            ):
                continue
            if self.case.same_aggregates and not all(
                old_root.aggregates <= root.aggregates for old_root in old_roots
            ):
                continue
            if homes and any(self._shares(p) for p, _, _ in old) and root.id not in homes:
                continue
            usable = {p.id for p in anchor.providers}
            if not all(p in usable for p, _, _ in kept if self._shares(p)):
                continue
            left = tuple(p for p in anchor.sharing_providers if p.root_id not in away)
            yield anchor._replace(sharing_providers=left)


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
