"""A simple, slow explanation, which defines what `placement.admin.explain` has to find.

It evaluates every set of conditions for every combination of providers, as the contract states
the rules. It uses the query string and the providers of a world, but no code of the package.
"""

from collections.abc import Callable, Collection, Iterator
import itertools
from typing import Any, NamedTuple

from placement import microversion
from placement.microversion import Version
from placement.tests import worlds

Host = worlds.Host
Failures = dict[str, frozenset[str]]


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


class Cloud:
    """A world, and what is derived from it."""

    def __init__(self, world: worlds.World) -> None:
        self.hosts = {host.name: host for host in world.hosts}
        self.names = world.names

    def ancestors(self, host: Host) -> list[str]:
        """Return the names of the provider and of its ancestors."""
        return [host.name] + (self.ancestors(self.hosts[host.parent]) if host.parent else [])

    def root(self, host: Host) -> Host:
        return self.hosts[self.ancestors(host)[-1]]

    @property
    def roots(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.parent is None]

    def reach(self, root: Host) -> list[Host]:
        """Return the providers of the tree, and the sharing providers linked with it."""
        tree = [host for host in self.hosts.values() if self.root(host) is root]
        aggregates = {a for host in tree for a in host.aggregates}
        return tree + [
            host
            for host in self.hosts.values()
            if host not in tree and 'SHARE' in host.traits and aggregates & set(host.aggregates)
        ]

    def meets(self, condition: Condition, host: Host, root: Host) -> bool:
        """Whether a provider satisfies a condition alone, in a candidate of this root."""
        own = self.root(host) is root
        kind, values, unsuffixed = condition.kind, condition.values, not condition.suffix
        traits = {worlds.trait(t) for t in host.traits}
        aggregates = {worlds.uuid_of(a) for a in host.aggregates}
        of_root = {worlds.uuid_of(a) for a in root.aggregates}
        if kind == 'resources':
            return stage(host.inventories.get(values[0]), condition.amount) == 4
        if kind == 'required':
            return bool(traits & set(values))
        if kind == 'forbidden':
            return not traits & set(values)
        if kind == 'in_tree':
            tree = self.root(self.hosts[self.names[values[0]]]) if values[0] in self.names else None
            return self.root(host) is tree and (own or not unsuffixed)
        if kind == 'member_of':
            return bool(aggregates & set(values) or (unsuffixed and own and of_root & set(values)))
        if kind == 'not_member_of':
            return not (aggregates & set(values) or (unsuffixed and of_root & set(values)))
        return True

    def fails_alone(self, condition: Condition, root: Host) -> bool:
        """Whether no provider in reach of a root satisfies the condition."""
        if condition.key.startswith('root_required'):
            return not self.meets(condition, root, root)
        return not any(self.meets(condition, host, root) for host in self.reach(root))

    def has_candidate(
        self, every: list[Condition], relaxed: Collection[str], root: Host, nested: bool
    ) -> bool:
        """Whether a root has a candidate without some conditions."""
        kept = [c for c in every if c.key not in relaxed]
        if any(not self.meets(c, root, root) for c in kept if c.key.startswith('root_required')):
            return False
        slots = [
            (suffix, amounts, self.options(every, relaxed, suffix, amounts, root))
            for suffix, amounts in _slots(every, relaxed)
        ]
        return any(
            self._is_candidate(kept, list(zip(slots, chosen, strict=True)), nested)
            for chosen in itertools.product(*(options for *_, options in slots))
        )

    def options(
        self,
        every: list[Condition],
        relaxed: Collection[str],
        suffix: str,
        amounts: dict[str, int],
        root: Host,
    ) -> list[Host]:
        of_group = [
            c
            for c in every
            if c.suffix == suffix
            and c.key not in relaxed
            and c.kind != 'resources'
            and (suffix or c.kind != 'required')
        ]
        return [
            host
            for host in self.reach(root)
            if all(
                name in host.inventories and (n == 0 or stage(host.inventories[name], n) == 4)
                for name, n in amounts.items()
            )
            and self.meets_together(of_group, host, root)
        ]

    def meets_together(self, of_group: list[Condition], host: Host, root: Host) -> bool:
        """Whether a provider satisfies all conditions of a group.

        Either the provider or its root must be in the aggregates of all expressions of the
        unsuffixed group.
        """
        members = [c for c in of_group if c.kind == 'member_of' and not c.suffix]
        if members:
            hosts = [host, root] if self.root(host) is root else [host]
            if not any(
                all({worlds.uuid_of(a) for a in h.aggregates} & set(c.values) for c in members)
                for h in hosts
            ):
                return False
        return all(self.meets(c, host, root) for c in of_group if c not in members)

    def _is_candidate(
        self, kept: list[Condition], bound: list[tuple[Any, Host]], nested: bool
    ) -> bool:
        together = {worlds.trait(t) for (suffix, *_), h in bound if not suffix for t in h.traits}
        if any(
            not together & set(c.values) for c in kept if c.kind == 'required' and c.suffix == ''
        ):
            return False
        suffixed = [host.name for (suffix, *_), host in bound if suffix]
        if any(c.kind == 'group_policy' for c in kept) and len(set(suffixed)) < len(suffixed):
            return False
        for c in kept:
            if c.kind == 'same_subtree':
                chosen = {host.name: host for (suffix, *_), host in bound if suffix in c.values}
                paths = [self.ancestors(host) for host in chosen.values()]
                if not any(all(name in path for path in paths) for name in chosen):
                    return False
        if not nested:
            used = {h.name: self.root(h).name for (_, amounts, _), h in bound if amounts}
            if len(set(used.values())) < len(used):
                return False
        return _fits(bound)


def _slots(
    every: list[Condition], relaxed: Collection[str]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the suffix and the amounts of each slot. A relaxed amount is 0."""
    for suffix in dict.fromkeys(c.suffix for c in every if c.suffix is not None):
        amounts = {
            c.values[0]: 0 if c.key in relaxed else c.amount
            for c in every
            if c.suffix == suffix and c.kind == 'resources'
        }
        if suffix:
            yield suffix, amounts
        else:
            yield from ((suffix, {name: n}) for name, n in amounts.items())


def _fits(bound: list[tuple[Any, Host]]) -> bool:
    sums: dict[tuple[str, str], int] = {}
    hosts = {host.name: host for _, host in bound}
    for (_, amounts, _), host in bound:
        for name, n in amounts.items():
            sums[host.name, name] = sums.get((host.name, name), 0) + n
    return all(
        hosts[host].inventories[name]['used'] + n <= int(capacity(hosts[host].inventories[name]))
        and n <= hosts[host].inventories[name]['max_unit']
        for (host, name), n in sums.items()
        if n
    )


def capacity(inventory: Any) -> float:
    return (inventory['total'] - inventory['reserved']) * inventory['allocation_ratio']


def stage(inventory: Any, n: int) -> int:
    """Return how many of these are passed: inventory, units, capacity, and free capacity."""
    if inventory is None:
        return 0
    if not (
        inventory['min_unit'] <= n <= inventory['max_unit'] and n % inventory['step_size'] == 0
    ):
        return 1
    if n > capacity(inventory):
        return 2
    return 3 if inventory['used'] + n > capacity(inventory) else 4


def trees(cloud: Cloud, every: list[Condition], relaxed: Collection[str], nested: bool) -> int:
    """Return the number of roots that have candidates without some conditions."""
    return sum(cloud.has_candidate(every, relaxed, root, nested) for root in cloud.roots)


def relaxations(cloud: Cloud, every: list[Condition], nested: bool) -> dict[frozenset[str], int]:
    """Return the relaxations with their numbers of trees."""
    if trees(cloud, every, (), nested):
        return {}
    for size in (1, 2):
        found = {
            frozenset(keys): count
            for keys in itertools.combinations([c.key for c in every], size)
            if _is_allowed(every, keys) and (count := trees(cloud, every, keys, nested))
        }
        if found:
            return found
    return {}


def _is_allowed(every: list[Condition], relaxed: Collection[str]) -> bool:
    """Whether each group keeps a condition or a class."""
    kept = {c.suffix for c in every if c.key not in relaxed or c.kind == 'resources'}
    return all(c.suffix in kept for c in every if c.suffix is not None)


def funnel(cloud: Cloud, every: list[Condition], suffix: str, amounts: dict[str, int]) -> list[int]:
    """Return how many providers remain after each check of a group or of an unsuffixed class."""
    kinds = (('in_tree',), ('member_of', 'not_member_of'), ('required', 'forbidden'))
    counts = [0] * 7
    for host in cloud.hosts.values():
        passed = [stage(host.inventories.get(name), n) for name, n in amounts.items()]
        checks = [min(passed, default=4) > number for number in range(4)]
        for of_kind in kinds:
            of_group = [
                c
                for c in every
                if c.suffix == suffix and c.kind in of_kind and (suffix or c.kind != 'required')
            ]
            checks.append(cloud.meets_together(of_group, host, cloud.root(host)))
        for number in range(7):
            counts[number] += all(checks[: number + 1])
    return counts
