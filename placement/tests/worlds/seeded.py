"""Small random worlds and queries; the same seed gives the same world and query."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
import dataclasses
from dataclasses import dataclass
import random
from urllib import parse

from placement import exception, microversion
from placement.candidates import model
from placement.microversion import Version
from placement.tests import worlds

# There are few names, so that queries often request what providers have.
CLASSES = ('V', 'D', 'VF')
TRAITS = ('T1', 'T2', 'AVX')
AGGREGATES = ('A', 'B')
# The microversions that changed the parameters of queries, except for the newest one.
VERSIONS = (
    microversion.ALLOCATION_CANDIDATES,
    microversion.CANDIDATES_REQUIRED,
    microversion.CANDIDATES_MEMBER_OF,
    microversion.FORBIDDEN_TRAITS,
    microversion.REPEATED_MEMBER_OF,
    microversion.GRANULAR_GROUPS,
    microversion.CONSUMER_GENERATION,
    microversion.NESTED_CANDIDATES,
    microversion.FORBIDDEN_AGGREGATES,
    microversion.ROOT_REQUIRED,
    microversion.SAME_SUBTREE,
)


@dataclass(frozen=True, slots=True)
class Search:
    """A query string with short names (see `worlds`) for a world."""

    world: worlds.World
    text: str
    version: Version

    @property
    def query(self) -> model.Query[int]:
        return self.world.parse(self.text, self.version)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The parameters with long names."""
        return parse.parse_qsl(self.world.query(self.text), keep_blank_values=True)


def search(seed: int | random.Random, hard: bool = False) -> Search:
    """Return a world and a query of any microversion.

    :param hard: whether most queries have no candidates
    """
    rng = seed if isinstance(seed, random.Random) else random.Random(seed)
    return query(rng, world(rng, hard), hard)


def world(rng: random.Random, hard: bool = False) -> worlds.World:
    """Return a world of one to eight providers."""
    hosts: list[worlds.Host] = []
    for number in range(rng.randint(1, 8)):
        traits = {trait for trait in TRAITS if rng.random() < 0.5}
        traits |= {'SHARE'} if rng.random() < 0.3 else set()
        hosts.append(
            worlds.Host(
                name=f'P{number}',
                parent=rng.choice(hosts).name if hosts and rng.random() < 0.6 else None,
                inventories={
                    worlds.CLASSES[name]: inventory(rng, hard)
                    for name in CLASSES
                    if rng.random() < (0.5 if hard else 0.75)
                },
                traits=tuple(sorted(traits)),
                aggregates=tuple(name for name in AGGREGATES if rng.random() < 0.5),
            )
        )
    return worlds.World(tuple(hosts))


def inventory(rng: random.Random, hard: bool = False) -> dict[str, float]:
    return {
        'total': rng.randint(1, 5) if hard else rng.randint(2, 10),
        'reserved': rng.choice((0, 0, 1)),
        'min_unit': rng.choice((1, 1, 1, 2)),
        'max_unit': rng.randint(1, 5) if hard else rng.randint(2, 8),
        'step_size': rng.choice((1, 1, 1, 2)),
        'allocation_ratio': rng.choice((1.0, 1.0, 1.5, 0.7)),
        'used': rng.choice((0, 0, 1, 2, 6)) if hard else rng.randint(0, 2),
    }


def query(rng: random.Random, world: worlds.World, hard: bool = False) -> Search:
    """Return a valid query; half of the queries have the newest microversion."""
    while True:
        version = rng.choice(VERSIONS) if rng.random() < 0.5 else worlds.NEWEST
        found = Search(world, '&'.join(_parameters(rng, version, hard)), version)
        try:
            found.query  # noqa: B018 (parses the text)
        except exception.BadQuery:  # for example, a trait is required and forbidden
            continue
        return found


def _parameters(rng: random.Random, version: Version, hard: bool) -> list[str]:
    suffixes = ['']
    if version >= microversion.GRANULAR_GROUPS:
        suffixes = rng.choice(([''], ['', '1'], ['1'], ['1', '2'], ['', '1', '2'], ['1', '2', '3']))
    items: list[str] = []
    for suffix in suffixes:
        resourceless = suffix and version >= microversion.SAME_SUBTREE and rng.random() < 0.2
        items += _group(rng, suffix, version, bool(resourceless), hard)
    named = [suffix for suffix in suffixes if suffix]
    if version >= microversion.GRANULAR_GROUPS and (len(named) > 1 or rng.random() < 0.2):
        items.append(f'group_policy={rng.choice(("none", "isolate"))}')
    if version >= microversion.SAME_SUBTREE and named and rng.random() < 0.5:
        for _ in range(rng.randint(1, 2)):
            chosen = rng.sample(named, rng.randint(1, len(named)))
            items.append(f'same_subtree={",".join(chosen)}')
    if version >= microversion.ROOT_REQUIRED and rng.random() < 0.25:
        items.append(f'root_required={_sometimes_forbidden(rng, rng.choice(TRAITS))}')
    return items


def _group(
    rng: random.Random, suffix: str, version: Version, resourceless: bool, hard: bool
) -> list[str]:
    items = []
    if not resourceless:
        chosen = rng.sample(CLASSES, rng.choice((1, 1, 2)))
        amounts = ','.join(f'{name}:{rng.randint(1, 4 if hard else 2)}' for name in chosen)
        items = [f'resources{suffix}={amounts}'] * rng.choice((1, 1, 1, 2))
    for since, probability, make in _CONDITIONS:
        if version >= since and rng.random() < (2 * probability if hard else probability):
            key, value = make(rng, version)
            items += [f'{key}{suffix}={value}'] * rng.choice((1, 1, 1, 2))
    return list(dict.fromkeys(items)) if version < microversion.REPEATED_MEMBER_OF else items


def _required(rng: random.Random, version: Version) -> tuple[str, str]:
    if version >= microversion.ANY_TRAITS and rng.random() < 0.4:
        return 'required', f'in:{",".join(rng.sample(TRAITS, 2))}'
    names = rng.choices((*TRAITS, 'SHARE'), k=rng.choice((1, 1, 2)))
    if version >= microversion.FORBIDDEN_TRAITS:
        names = [_sometimes_forbidden(rng, name) for name in names]
    return 'required', ','.join(names)


def _member_of(rng: random.Random, version: Version) -> tuple[str, str]:
    value = rng.choice(('A', 'B', 'in:A,B', 'in:A,MISSING'))
    if version >= microversion.FORBIDDEN_AGGREGATES and rng.random() < 0.3:
        value = f'!{value}'
    return 'member_of', value


def _in_tree(rng: random.Random, _version: Version) -> tuple[str, str]:
    return 'in_tree', f'P{rng.randint(0, 3)}'


def _sometimes_forbidden(rng: random.Random, name: str) -> str:
    return f'!{name}' if rng.random() < 0.3 else name


# (the first microversion, the probability, and a function that returns a key and a value)
_Make = Callable[[random.Random, Version], tuple[str, str]]
_CONDITIONS: tuple[tuple[Version, float, _Make], ...] = (
    (microversion.CANDIDATES_REQUIRED, 0.3, _required),
    (microversion.CANDIDATES_REQUIRED, 0.1, _required),
    (microversion.CANDIDATES_MEMBER_OF, 0.15, _member_of),
    (microversion.CANDIDATES_IN_TREE, 0.1, _in_tree),
)


# Searches of one kind -------------------------------------------------------------


def _search_of(
    hosts: Iterable[worlds.Host], groups: Mapping[str, Mapping[str, int]], *more: str
) -> Search:
    """Return a search for amounts, by suffix and class, with the newest microversion."""
    items = [
        f'resources{suffix}={",".join(f"{name}:{n}" for name, n in amounts.items())}'
        for suffix, amounts in groups.items()
    ]
    return Search(worlds.World(tuple(hosts)), '&'.join((*items, *more)), worlds.NEWEST)


def _policy(rng: random.Random, probability: float = 0.5) -> str:
    return f'group_policy={"isolate" if rng.random() < probability else "none"}'


def sharing(rng: random.Random) -> Search:
    """Return trees with few inventories, sharing providers, and a query for several classes."""
    hosts = [
        worlds.Host(
            name=name,
            inventories={
                worlds.CLASSES[short]: worlds.inventory(rng.randint(2, 4), rng.randint(0, 3))
                for short in rng.sample(CLASSES, rng.choice((1, 2) if traits else (0, 1, 2)))
            },
            traits=traits,
            aggregates=tuple(rng.sample(AGGREGATES, rng.choice((1, 2)))),
        )
        for kind, most, traits in (('S', 3, ('SHARE',)), ('H', 4, ()))
        for name in (f'{kind}{number}' for number in range(rng.randint(1, most)))
    ]
    amounts = {name: rng.randint(1, 2) for name in rng.sample(CLASSES, rng.choice((2, 3)))}
    groups = {'': amounts}
    if rng.random() < 0.5:
        groups['_1'] = dict([amounts.popitem()])
    return _search_of(rng.sample(hosts, len(hosts)), groups)


def contended(rng: random.Random) -> Search:
    """Return a small tree, and a query whose groups all request the same class."""
    hosts = [
        worlds.Host(
            name=f'P{number}',
            parent='P0' if number else None,
            inventories={'VCPU': {**inventory(rng), 'min_unit': 1, 'step_size': 1}},
        )
        for number in range(rng.randint(1, 3))
    ]
    suffixes = rng.choice((('', '_1'), ('_1', '_2'), ('', '_1', '_2'), ('_1', '_2', '_3')))
    return _search_of(hosts, {name: {'V': rng.randint(1, 2)} for name in suffixes}, _policy(rng))


def packing(rng: random.Random) -> Search:
    """Return a tree, and a query for unequal amounts that nearly exhaust the tree."""
    names = rng.choice((('VCPU',), ('VCPU', 'DISK_GB')))
    hosts = [worlds.Host(name='R')]
    for number in range(rng.randint(2, 4)):
        total = worlds.inventory(rng.choice((6, 6, 8)))
        hosts.append(worlds.Host(f'P{number}', 'R', dict.fromkeys(names, total)))
    groups = {
        f'_{number}': {name: rng.randint(1, 5) for name in names}
        for number in range(rng.randint(3, 6))
    }
    return _search_of(hosts, groups, _policy(rng, 1 / 3))


def tight(rng: random.Random) -> Search:
    """Return a tree with little more than the groups of the query request."""
    policy, classes = _policy(rng), CLASSES[: rng.randint(1, 2)]
    most, required = rng.choice((1, 2, 3)), rng.choice((0, 0.5))
    totals = [Counter({name: rng.choice((0, 0, 1)) for name in classes}) for _ in range(4)]
    totals = totals[: rng.randint(2, 4)]
    groups = {}
    for suffix in rng.choice((('', '_1', '_2', '_3'), ('_1', '_2', '_3', '_4'))):
        few = rng.sample(classes, rng.randint(1, len(classes))) if suffix else classes
        groups[suffix] = {name: rng.randint(1, most) for name in few}
    unused = rng.sample(totals, len(totals))
    for suffix, amounts in groups.items():
        isolated = suffix and policy.endswith('isolate')
        total = unused.pop() if isolated and unused else rng.choice(totals)
        total.update(amounts)
    hosts = [
        worlds.Host(
            name=f'P{number}',
            parent='P0' if number else None,
            inventories={worlds.CLASSES[c]: worlds.inventory(n) for c, n in total.items() if n},
            traits=tuple(name for name in TRAITS[:2] if rng.random() < required),
        )
        for number, total in enumerate(totals)
    ]
    traits = [
        f'required{suffix}={rng.choice(TRAITS[:2])}' for suffix in groups if rng.random() < required
    ]
    return _search_of(hosts, groups, policy, *traits)


def cloud(rng: random.Random, parts: int) -> worlds.World:
    """Return many small worlds as one; only the first of them has the names of other worlds."""
    hosts: list[worlds.Host] = []
    for part in range(parts):
        more = f'_{part}' if part else ''
        hosts += [
            dataclasses.replace(
                host,
                name=host.name + more,
                parent=host.parent and host.parent + more,
                aggregates=tuple(name + more[:2] for name in host.aggregates),
            )
            for host in world(rng).hosts
        ]
    return worlds.World(tuple(hosts))
