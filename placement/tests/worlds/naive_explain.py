"""A simple, slow explanation, which defines what `placement.admin.explain` has to find.

It evaluates every set of conditions with the definition of candidates (`naive`). It uses the query
string and the providers of a world, but no code of the package.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
import itertools
from typing import Any, NamedTuple

from placement import microversion
from placement.candidates import model
from placement.microversion import Version
from placement.tests import worlds
from placement.tests.worlds import naive
from placement.tests.worlds.naive_headroom import with_providers

# The class with this id less that of a class stands for the presence of an inventory of it.
_PRESENCE = -1


class Condition(NamedTuple):
    key: str
    kind: str
    suffix: str | None
    values: tuple[str, ...]
    amount: int = 0


def conditions(pairs: list[tuple[str, str]], version: Version) -> list[Condition]:
    """Return the conditions of a query in any order."""
    last = dict(pairs)
    found: dict[str, Condition] = {}
    for key, value in pairs:
        kind = next((k for k in _SPLIT if key.startswith(k)), None)
        if kind is None:  # `limit` is no condition
            continue
        if kind in ('resources', 'in_tree') or (
            kind == 'required' and version < microversion.ANY_TRAITS
        ):
            value = last[key]
        for condition in _SPLIT[kind](key.removeprefix(kind), value):
            found[condition.key] = condition
    return list(found.values())


def _resources(suffix: str, value: str) -> Iterator[Condition]:
    for name, amount in (item.split(':') for item in value.split(',')):
        yield Condition(f'resources{suffix}:{name}', 'resources', suffix, (name,), int(amount))


def _required(prefix: str, suffix: str | None, value: str) -> Iterator[Condition]:
    if value.startswith('in:'):
        names = tuple(sorted(set(value.removeprefix('in:').split(','))))
        yield Condition(f'{prefix}:{_any(names)}', 'required', suffix, names)
        return
    for name in value.split(','):
        kind = 'forbidden' if name.startswith('!') else 'required'
        yield Condition(f'{prefix}:{name}', kind, suffix, (name.lstrip('!'),))


def _member_of(suffix: str, value: str) -> Iterator[Condition]:
    kind = 'not_member_of' if value.startswith('!') else 'member_of'
    uuids = tuple(sorted(set(value.removeprefix('!').removeprefix('in:').split(','))))
    mark = '!' if value.startswith('!') else ''
    yield Condition(f'member_of{suffix}:{mark}{_any(uuids)}', kind, suffix, uuids)


def _any(names: tuple[str, ...]) -> str:
    return ('in:' if len(names) > 1 else '') + ','.join(names)


def _same_subtree(_suffix: str, value: str) -> Iterator[Condition]:
    names = tuple(sorted(set(value.split(','))))
    yield Condition(f'same_subtree:{",".join(names)}', 'same_subtree', None, names)


def _group_policy(_suffix: str, value: str) -> Iterator[Condition]:
    if value == 'isolate':
        yield Condition('group_policy', 'group_policy', None, ())


_SPLIT: dict[str, Callable[[str, str], Iterator[Condition]]] = {
    'resources': _resources,
    'required': lambda suffix, value: _required(f'required{suffix}', suffix, value),
    'member_of': _member_of,
    'in_tree': lambda suffix, value: iter(
        [Condition(f'in_tree{suffix}', 'in_tree', suffix, (value,))]
    ),
    'root_required': lambda _suffix, value: _required('root_required', None, value),
    'same_subtree': _same_subtree,
    'group_policy': _group_policy,
}


Conditions = Collection[Condition]


class Cloud:
    """A world, and what the conditions of a query find in it."""

    def __init__(self, world: worlds.World, every: Conditions, nested: bool) -> None:
        self.every = every
        self.nested = nested
        self.anchors = [with_providers(anchor, _with_presence) for anchor in world.anchors]
        self._ids = world.ids

    def trees(self, relaxed: Conditions = (), nested: bool | None = None) -> int:
        """Return the number of roots that have candidates without some conditions."""
        query = self._query(relaxed, self.nested if nested is None else nested)
        return sum(any(naive.solve(query, anchor)) for anchor in self.anchors)

    def _query(self, relaxed: Conditions, nested: bool) -> model.Query[int]:
        kept = [c for c in self.every if c not in relaxed]
        of_query = [c for c in kept if c.suffix is None]
        suffixes = {c.suffix for c in self.every if c.suffix is not None}
        return model.Query(
            tuple(self._group(suffix, kept, relaxed) for suffix in suffixes),
            isolate=any(c.kind == 'group_policy' for c in of_query),
            root_required=self._traits(of_query, 'required'),
            root_forbidden=self._traits(of_query, 'forbidden'),
            same_subtrees=tuple(frozenset(c.values) for c in of_query if c.kind == 'same_subtree'),
            nested=nested,
        )

    def _traits(self, conditions: Conditions, kind: str) -> frozenset[int]:
        names = (name for c in conditions if c.kind == kind for name in c.values)
        return frozenset(map(self._ids.traits.__getitem__, names))

    def _group(
        self, suffix: str, conditions: Conditions, relaxed: Conditions = ()
    ) -> model.Group[int]:
        """Return the request group with those of the conditions that are its own."""
        own = [c for c in conditions if c.suffix == suffix]
        classes, ids = self._ids.classes, self._ids
        amounts = [(classes[c.values[0]], c.amount) for c in own if c.kind == 'resources']
        present = [c for c in relaxed if c.suffix == suffix and c.kind == 'resources']
        in_trees = [c.values[0] for c in own if c.kind == 'in_tree']

        def aggregates(condition: Condition) -> frozenset[int]:
            return frozenset(ids.aggregates[v] for v in condition.values if v in ids.aggregates)

        return model.Group(
            suffix,
            (*amounts, *((_PRESENCE - classes[c.values[0]], 1) for c in present)),
            required=tuple(self._traits([c], 'required') for c in own if c.kind == 'required'),
            forbidden=self._traits(own, 'forbidden'),
            member_of=tuple(aggregates(c) for c in own if c.kind == 'member_of'),
            forbidden_aggregates=frozenset().union(
                *(aggregates(c) for c in own if c.kind == 'not_member_of')
            ),
            in_tree=ids.roots.get(in_trees[0], model.NO_SUCH_ROOT) if in_trees else None,
        )

    def relaxations(self) -> dict[frozenset[str], int]:
        """Return the relaxations with their numbers of trees."""
        if self.trees():
            return {}
        for size in (1, 2):
            found = {
                frozenset(c.key for c in relaxed): count
                for relaxed in itertools.combinations(self.every, size)
                if self._is_allowed(relaxed) and (count := self.trees(relaxed))
            }
            if found:
                return found
        return {}

    def _is_allowed(self, relaxed: Conditions) -> bool:
        """Whether each group keeps a condition or a class."""
        kept = {c.suffix for c in self.every if c not in relaxed or c.kind == 'resources'}
        return all(c.suffix in kept for c in self.every if c.suffix is not None)

    def failures(self, anchor: model.Anchor) -> set[str]:
        """Return the keys of the conditions that no provider in reach of a root satisfies."""
        return {c.key for c in self.every if not self._is_satisfied(c, anchor)}

    def _is_satisfied(self, condition: Condition, anchor: model.Anchor) -> bool:
        if condition.kind in ('same_subtree', 'group_policy'):
            return True
        if condition.suffix is None:
            has = not self._traits([condition], condition.kind).isdisjoint(anchor.root.traits)
            return has == (condition.kind == 'required')
        if condition.kind == 'required':
            # For the providers of a suffixed group, required traits are not collective.
            condition = condition._replace(suffix='suffix')
        group = self._group(condition.suffix or '', [condition])
        return any(self._serve(group, anchor, anchor.providers))

    def _serve(
        self, group: model.Group[int], anchor: model.Anchor, providers: Iterable[model.Provider]
    ) -> Iterator[bool]:
        slot = model.Slot(group, group.amounts)
        return (naive.can_serve(slot, provider, anchor.root) for provider in providers)

    def funnel(self, suffix: str, amounts: dict[str, int]) -> list[int]:
        """Return how many providers remain after each check of a group or of a class."""
        counts = [0] * 7
        kinds = (('in_tree',), ('member_of', 'not_member_of'), ('required', 'forbidden'))
        groups = [self._group(suffix, [c for c in self.every if c.kind in of]) for of in kinds]
        for anchor in self.anchors:
            for provider in anchor.tree:
                passed = (
                    _stage(provider.inventories.get(self._ids.classes[name]), n)
                    for name, n in amounts.items()
                )
                stage = min(passed, default=4)
                checks = [stage > number for number in range(4)]
                checks += (any(self._serve(group, anchor, [provider])) for group in groups)
                for number in range(7):
                    counts[number] += all(checks[: number + 1])
        return counts


def _with_presence(provider: model.Provider) -> model.Provider:
    present = {
        _PRESENCE - id_: model.ProviderInventory(_PRESENCE - id_, 10**9, 0, 1, 10**9, 1, 1.0, 0)
        for id_ in provider.inventories
    }
    return provider._replace(inventories={**provider.inventories, **present})


def _stage(inventory: Any, n: int) -> int:
    """Return how many of these are passed: inventory, units, capacity, and free capacity."""
    if inventory is None:
        return 0
    if not (inventory.min_unit <= n <= inventory.max_unit and n % inventory.step_size == 0):
        return 1
    if n > inventory.capacity:
        return 2
    return 3 if inventory.used + n > inventory.capacity else 4
