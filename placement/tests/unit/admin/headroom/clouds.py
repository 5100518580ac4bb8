"""Random small clouds with queries of all microversions; the same seed gives the same case."""

from collections.abc import Callable
from dataclasses import dataclass
import random

from placement import exception, microversion
from placement.candidates import model
from placement.microversion import Version
from placement.tests import worlds

CLASSES = ('V', 'D', 'VF')
TRAITS = ('T1', 'T2', 'AVX')
AGGREGATES = ('A', 'B')
# Half of all queries have the newest microversion.
_VERSIONS = (
    microversion.ALLOCATION_CANDIDATES,
    microversion.CANDIDATES_REQUIRED,
    microversion.CANDIDATES_MEMBER_OF,
    microversion.REPEATED_MEMBER_OF,
    microversion.GRANULAR_GROUPS,
    microversion.CONSUMER_GENERATION,
    microversion.NESTED_CANDIDATES,
    microversion.FORBIDDEN_AGGREGATES,
    microversion.ROOT_REQUIRED,
    microversion.SAME_SUBTREE,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A cloud, and a query string with short names (see `worlds`)."""

    world: worlds.World
    text: str
    version: Version

    @property
    def query(self) -> model.Query[int]:
        return self.world.parse(self.text, self.version)


def case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    while True:
        version = rng.choice(_VERSIONS) if rng.random() < 0.5 else worlds.NEWEST
        found = Case(_world(rng), _query(rng, version), version)
        try:
            found.query  # noqa: B018 (parses the text)
        except exception.BadQuery:  # for example, a trait is required and forbidden
            continue
        return found


def _world(rng: random.Random) -> worlds.World:
    hosts: list[worlds.Host] = []
    for number in range(rng.randint(1, 7)):
        parent = rng.choice(hosts).name if hosts and rng.random() < 0.55 else None
        traits = {trait for trait in TRAITS if rng.random() < 0.6}
        traits |= {'SHARE'} if rng.random() < 0.3 else set()
        hosts.append(
            worlds.Host(
                name=f'P{number}',
                parent=parent,
                inventories={
                    worlds.CLASSES[name]: _inventory(rng) for name in CLASSES if rng.random() < 0.75
                },
                traits=tuple(sorted(traits)),
                aggregates=tuple(name for name in AGGREGATES if rng.random() < 0.5),
            )
        )
    return worlds.World(tuple(hosts))


def _inventory(rng: random.Random) -> dict[str, float]:
    return {
        'total': rng.randint(2, 10),
        'reserved': rng.choice((0, 0, 1)),
        'min_unit': rng.choice((1, 1, 1, 2)),
        'max_unit': rng.randint(2, 8),
        'step_size': rng.choice((1, 1, 1, 2)),
        'allocation_ratio': rng.choice((1.0, 1.0, 1.5, 0.7)),
        'used': rng.randint(0, 2),
    }


def _query(rng: random.Random, version: Version) -> str:
    suffixes = ['']
    if version >= microversion.GRANULAR_GROUPS:
        suffixes = rng.choice(([''], ['', '1'], ['1'], ['1', '2'], ['', '1', '2'], ['1', '2', '3']))
    items: list[str] = []
    for suffix in suffixes:
        resourceless = suffix and version >= microversion.SAME_SUBTREE and rng.random() < 0.2
        items += _group(rng, suffix, version, bool(resourceless))
    named = [suffix for suffix in suffixes if suffix]
    if version >= microversion.GRANULAR_GROUPS and (len(named) > 1 or rng.random() < 0.2):
        items.append(f'group_policy={rng.choice(("none", "isolate"))}')
    if version >= microversion.SAME_SUBTREE and named and rng.random() < 0.5:
        chosen = rng.sample(named, rng.randint(1, len(named)))
        items += [f'same_subtree={",".join(chosen)}'] * rng.randint(1, 2)
    if version >= microversion.ROOT_REQUIRED and rng.random() < 0.2:
        items.append(f'root_required={_sometimes_forbidden(rng, rng.choice(TRAITS))}')
    if version >= microversion.CANDIDATES_LIMIT and rng.random() < 0.1:
        items.append('limit=1')  # has no effect on the number of claims
    return '&'.join(items)


def _group(rng: random.Random, suffix: str, version: Version, resourceless: bool) -> list[str]:
    items = []
    if not resourceless:
        chosen = rng.sample(CLASSES, rng.choice((1, 1, 2)))
        amounts = ','.join(f'{name}:{rng.randint(1, 2)}' for name in chosen)
        items = [f'resources{suffix}={amounts}'] * rng.choice((1, 1, 1, 2))
    for since, probability, make in _CONDITIONS:
        if version >= since and rng.random() < probability:
            key, value = make(rng, version)
            items += [f'{key}{suffix}={value}'] * rng.choice((1, 1, 1, 2))
    if version < microversion.REPEATED_MEMBER_OF:
        items = list(dict.fromkeys(items))
    return items


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
