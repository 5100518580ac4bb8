"""Random small clouds with consumers, and a drain; the same seed gives the same case."""

from collections import Counter
from collections.abc import Iterator, Sequence
import dataclasses
from dataclasses import dataclass
import functools
import random
from typing import Any, NamedTuple

import os_resource_classes

from placement.tests import worlds
from placement.tests.worlds.naive_headroom import Cloud as Claims

STYLES = ('flat', 'nested', 'sharing', 'mixed', 'packed')
_TRAITS = ('T1', 'T2')
_AGGREGATES = ('A', 'B')
_TYPES = (None, 'INSTANCE', 'MIGRATION')
# Requests of consumers, by the classes that a style has.
_QUERIES = {
    'flat': ('resources=V:{a}', 'resources=V:{a},M:{b}', 'resources=V:{a},M:{b},D:{c}'),
    'nested': (
        'resources=V:{a},VF:{b}',
        'resources=V:{a}',
        'resources1=V:{a}&resources2=VF:{b}&group_policy=none',
        'resources=M:{b}&resources1=VF:{a}&resources2=VF:{c}&group_policy=isolate',
    ),
    'sharing': ('resources=V:{a},D:{b}', 'resources=V:{a}', 'resources=D:{c}'),
}
_QUERIES['mixed'] = _QUERIES['nested'] + _QUERIES['sharing']


class Allocation(NamedTuple):
    provider_id: int
    class_id: int
    amount: int


@dataclass(frozen=True)
class Case:
    """A cloud with consumers, and what to drain.

    :ivar empty: the world without usage
    :ivar drained: the names of the roots to drain; empty if consumers move by themselves
    :ivar moving: the UUIDs of these consumers
    :ivar where: the value of --where
    :ivar same_aggregates: whether --same-aggregates is given
    :ivar same_traits: the patterns of --same-traits
    """

    style: str
    empty: worlds.World
    consumers: tuple[worlds.Consumer, ...]
    drained: tuple[str, ...]
    moving: tuple[str, ...]
    where: str = ''
    same_aggregates: bool = False
    same_traits: tuple[str, ...] = ()

    @functools.cached_property
    def world(self) -> worlds.World:
        """The world with the usage of the consumers."""
        return self.empty.claimed(*self.consumers)

    def allocations(self, consumer: worlds.Consumer) -> list[Allocation]:
        """Return the allocations of a consumer with the ids of the world."""
        numbers = {host.name: number for number, host in enumerate(self.empty.hosts, 1)}
        return sorted(
            Allocation(numbers[provider], self.empty.ids.classes[name], amount)
            for provider, amounts in consumer.allocations.items()
            for name, amount in amounts.items()
        )

    @property
    def roots(self) -> frozenset[int] | None:
        """The ids of the drained roots; None if consumers move by themselves."""
        if self.moving:
            return None
        numbers = {host.name: number for number, host in enumerate(self.world.hosts, 1)}
        return frozenset(numbers[name] for name in self.drained)

    @property
    def affected(self) -> list[worlds.Consumer]:
        """The consumers that have to move."""
        if self.moving:
            return [consumer for consumer in self.consumers if consumer.uuid in self.moving]
        roots, providers = self.roots or (), self.empty.providers
        return [
            consumer
            for consumer in self.consumers
            if any(providers[id_ - 1].root_id in roots for id_, _, _ in self.allocations(consumer))
        ]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `placement-manage drain`."""
        what = ('--consumer', *self.moving) if self.moving else self.drained
        return (*what, *self.options)

    @property
    def options(self) -> tuple[str, ...]:
        """The conditions for the new trees."""
        patterns = ('--same-traits', ','.join(self.same_traits)) if self.same_traits else ()
        same = ('--same-aggregates',) if self.same_aggregates else ()
        return ('--where', self.where, *same, *patterns)


def case(seed: int, style: str | None = None) -> Case:
    """Return the case of a seed.

    :param style: one of `STYLES`; by default, the seed determines it
    """
    rng = random.Random(seed)
    style = style or STYLES[seed % len(STYLES)]
    if style == 'packed':
        return _packed(rng)
    empty = worlds.World(tuple(_hosts(rng, style)))
    consumers = _consumers(rng, style, empty)
    roots = [host.name for host in empty.hosts if host.parent is None]
    drained = rng.sample(roots, 2 if len(roots) > 3 and rng.random() < 0.15 else 1)
    moving: list[str] = []
    if consumers and rng.random() < 0.1:
        moving = [
            one.uuid for one in rng.sample(consumers, min(len(consumers), rng.choice((1, 2))))
        ]
    found = Case(style, empty, tuple(consumers), tuple(drained), tuple(moving), **_options(rng))
    if rng.random() < 0.1:
        found = dataclasses.replace(found, empty=_changed(rng, found.empty))
    return _tight(rng, found) if rng.random() < 0.6 else found


def _packed(rng: random.Random) -> Case:
    """Return a drain that is possible, but leaves hardly any free capacity."""
    amounts = [
        {short: rng.randint(1, 8) for short in 'VM'[: rng.choice((1, 2))]}
        for _ in range(rng.randint(4, 12))
    ]
    free: list[Counter[str]] = [Counter() for _ in range(rng.randint(2, 5))]
    for one in amounts:
        rng.choice(free).update(one)
    slack = rng.randint(0, 2)
    hosts = [worlds.Host('H', None, {worlds.CLASSES[one]: worlds.inventory(99) for one in 'VM'})]
    for number, totals in enumerate(free):
        inventories = {
            worlds.CLASSES[short]: worlds.inventory(total + rng.randint(0, slack))
            for short, total in totals.items()
        }
        hosts.append(worlds.Host(f'H{number}', None, inventories))
    world = worlds.World(tuple(hosts))
    consumers = tuple(
        worlds.Consumer(
            f'consumer {number}', {'H': {worlds.CLASSES[short]: n for short, n in one.items()}}
        )
        for number, one in enumerate(amounts)
    )
    return Case('packed', world, consumers, ('H',), ())


def _changed(rng: random.Random, world: worlds.World) -> worlds.World:
    """Return a world in which an inventory does not permit its allocations any more."""
    hosts = list(world.hosts)
    number = rng.randrange(len(hosts))
    inventories = dict(hosts[number].inventories)
    if inventories:
        name = rng.choice(sorted(inventories))
        inventory = inventories.pop(name)
        change = rng.choice(({'min_unit': 3}, {'step_size': 3}, {'total': 1}, None))
        if change:
            inventories[name] = {**inventory, 'reserved': 0, **change}
        hosts[number] = dataclasses.replace(hosts[number], inventories=inventories)
    return worlds.World(tuple(hosts))


def _tight(rng: random.Random, loose: Case) -> Case:
    """Reduce the free capacity until it is hardly more than the consumers need."""
    world, roots = loose.world, loose.roots or frozenset()
    needed: Counter[int] = Counter()
    for consumer in loose.affected:
        for provider_id, class_id, amount in loose.allocations(consumer):
            if not roots or world.providers[provider_id - 1].root_id in roots:
                needed[class_id] += amount
    slack = rng.choice((1.0, 1.2, 1.4, 2.0))
    free = {
        (provider.id, class_id): int(inventory.capacity) - inventory.used
        for provider in world.providers
        for class_id, inventory in provider.inventories.items()
        if provider.root_id not in roots
    }
    totals: Counter[tuple[int, int]] = Counter()
    for class_id in needed:
        keys = [key for key in free if key[1] == class_id]
        rng.shuffle(keys)
        surplus = sum(free[key] for key in keys) - int(needed[class_id] * slack)
        for key in keys:
            totals[key] = max(0, min(surplus, free[key] - rng.choice((0, 3, 6))))
            surplus -= totals[key]
    classes = loose.empty.ids.classes
    hosts = tuple(
        dataclasses.replace(
            host,
            inventories={
                name: {
                    **values,
                    'total': max(1, values['total'] - totals[number, classes[name]]),
                    'allocation_ratio': 1.0,
                }
                for name, values in host.inventories.items()
            },
        )
        for number, host in enumerate(loose.empty.hosts, 1)
    )
    return dataclasses.replace(loose, empty=worlds.World(hosts))


def _hosts(rng: random.Random, style: str) -> Iterator[worlds.Host]:
    sharing = style in ('sharing', 'mixed')
    for number in range(rng.randint(3, 5)):
        name = f'H{number}'
        traits = [trait for trait in _TRAITS if rng.random() < 0.7]
        traits += ['DISABLED'] if rng.random() < 0.05 else []
        aggregates = tuple(one for one in _AGGREGATES if rng.random() < 0.6)
        classes = ['V', 'M', 'D'] if style == 'flat' else ['V', 'M']
        if sharing and rng.random() < 0.2:
            classes.append('D')
        yield _host(rng, name, None, classes, traits, aggregates)
        for child in range(rng.randint(0, 2) if style in ('nested', 'mixed') else 0):
            classes = rng.choice((['VF'], ['VF', 'V']))
            traits = [trait for trait in _TRAITS if rng.random() < 0.5]
            yield _host(rng, f'{name}_{child}', name, classes, traits)
    for number in range(rng.randint(1, 2) if sharing else 0):
        aggregates = tuple(one for one in _AGGREGATES if rng.random() < 0.7)
        yield _host(rng, f'S{number}', None, ['D'], ['SHARE'], aggregates, 4)


def _host(
    rng: random.Random,
    name: str,
    parent: str | None,
    classes: Sequence[str],
    traits: Sequence[str],
    aggregates: tuple[str, ...] = (),
    factor: int = 1,
) -> worlds.Host:
    inventories = {
        worlds.CLASSES[short]: {
            'total': rng.randint(5, 20) * factor,
            'reserved': rng.choice((0, 0, 0, 1)),
            'min_unit': 1,
            'max_unit': rng.choice((20, 20, 20, 8)) * factor,
            'step_size': rng.choice((1, 1, 1, 1, 2)),
            'allocation_ratio': rng.choice((1.0, 1.0, 1.5)),
            'used': 0,
        }
        for short in classes
    }
    return worlds.Host(name, parent, inventories, tuple(traits), aggregates)


def _consumers(rng: random.Random, style: str, world: worlds.World) -> list[worlds.Consumer]:
    """Return consumers with random candidates; some have allocations of two candidates."""
    count = rng.randint(4, 20)
    taken: Counter[tuple[int, int]] = Counter()
    consumers = []
    for number in range(count):
        amounts: Counter[tuple[int, int]] = Counter()
        for _ in range(2 if rng.random() < 0.1 else 1):
            text = rng.choice(_QUERIES[style]).format(
                a=rng.randint(1, 5), b=rng.randint(1, 4), c=rng.randint(1, 3)
            )
            claims = Claims(world.parse(text), world)
            claims.taken = taken
            found = sorted({binding for _, binding in claims.candidates()})
            if found:
                before = Counter(taken)
                claims.claim(rng.choice(found))
                amounts += taken - before
        if amounts:
            allocations: dict[str, dict[str, int]] = {}
            for (provider_id, class_id), n in sorted(amounts.items()):
                of_provider = allocations.setdefault(world.hosts[provider_id - 1].name, {})
                of_provider[os_resource_classes.STANDARDS[class_id]] = n
            type_, owner = rng.choice(_TYPES), f'owner-{number % 2}'
            consumers.append(
                worlds.Consumer(f'consumer {number}', allocations, type_, owner, owner, number)
            )
    return consumers


def _options(rng: random.Random) -> dict[str, Any]:
    where = ''
    if rng.random() < 0.15:
        where = rng.choice(
            (
                f'root_required={worlds.trait("T1")}',
                f'root_required=!{worlds.trait("T1")}',
                f'member_of={worlds.uuid_of("A")}',
                f'member_of=!{worlds.uuid_of("A")}',
                f'required={worlds.trait("T2")}',
                f'required=!{worlds.trait("T2")}&member_of=in:{worlds.uuid_of("A")},'
                f'{worlds.uuid_of("B")}',
            )
        )
    return {
        'where': where,
        'same_aggregates': rng.random() < 0.1,
        'same_traits': rng.choice((('CUSTOM_*',), ('*_T1', 'C*'))) if rng.random() < 0.1 else (),
    }
