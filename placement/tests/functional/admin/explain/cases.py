"""Random worlds, and random queries that mostly have no candidates."""

from collections.abc import Sequence
import random

from placement import exception
from placement.candidates import request
from placement.microversion import ANY_TRAITS, MAX_VERSION, Version
from placement.tests import worlds

Pairs = list[tuple[str, str]]

_CLASSES = ('VCPU', 'DISK_GB', 'SRIOV_NET_VF')
_TRAITS = ('T1', 'T2', 'AVX', 'SHARE')
_AGGREGATES = ('A', 'B')
_VERSIONS = ((1, 10), (1, 17), (1, 22), (1, 24), (1, 25), (1, 28), (1, 29), (1, 32), (1, 35))


def world(rng: random.Random) -> worlds.World:
    """Return a world of one to eight providers."""
    hosts: list[worlds.Host] = []
    for number in range(rng.randint(1, 8)):
        traits = set(rng.sample(_TRAITS[:3], rng.randint(0, 2)))
        if rng.random() < 0.25:
            traits.add('SHARE')
        hosts.append(
            worlds.Host(
                name=f'P{number}',
                parent=rng.choice([None, *(host.name for host in hosts)]),
                inventories={
                    name: _inventory(rng)
                    for name in rng.sample(_CLASSES, rng.choice((0, 1, 1, 2, 3)))
                },
                traits=tuple(sorted(traits)),
                aggregates=tuple(sorted(rng.sample(_AGGREGATES, rng.choice((0, 1, 1, 2))))),
            )
        )
    return worlds.World(tuple(hosts))


def _inventory(rng: random.Random) -> dict[str, float]:
    return {
        'total': rng.randint(1, 5),
        'reserved': rng.choice((0, 0, 1)),
        'min_unit': rng.choice((1, 1, 1, 2)),
        'max_unit': rng.randint(1, 5),
        'step_size': rng.choice((1, 1, 1, 2)),
        'allocation_ratio': rng.choice((1.0, 1.0, 1.5, 0.7)),
        'used': rng.choice((0, 0, 1, 2, 6)),
    }


def query(rng: random.Random, cloud: worlds.World) -> tuple[Pairs, Version]:
    """Return the parameters of a valid query, and its microversion."""
    while True:
        version = MAX_VERSION if rng.random() < 0.6 else Version(*rng.choice(_VERSIONS))
        pairs = _parameters(rng, cloud, version)
        try:
            request.parse(pairs, version)
        except exception.BadQuery:
            continue
        return pairs, version


def _parameters(rng: random.Random, cloud: worlds.World, version: Version) -> Pairs:
    pairs: Pairs = []
    count = rng.choice((0, 1, 1, 2, 2, 3)) if version >= (1, 25) else 0
    names = ('_1', '_2', '_3') if version >= (1, 33) else ('1', '2', '3')
    suffixes = list(names[:count])
    if not suffixes or rng.random() < 0.6:
        suffixes.insert(rng.randint(0, len(suffixes)), '')
    for suffix in suffixes:
        pairs += _group(rng, cloud, version, suffix)
    if count > 1 or rng.random() < 0.1:
        pairs.append(('group_policy', rng.choice(('none', 'isolate'))))
    if rng.random() < 0.3:
        pairs.append(('root_required', _traits(rng, forbidden=True)))
    for _ in range(rng.choice((0, 0, 1, 2))):
        together = rng.sample(names[:count], rng.randint(1, count)) if count else ['_1']
        pairs.append(('same_subtree', ','.join(together)))
    return [pair for pair in pairs if _since(pair[0]) <= version]


def _since(key: str) -> tuple[int, int]:
    kinds = {
        'required': (1, 17),
        'member_of': (1, 21),
        'group_policy': (1, 25),
        'in_tree': (1, 31),
        'root_required': (1, 35),
        'same_subtree': (1, 36),
    }
    return max((since for kind, since in kinds.items() if key.startswith(kind)), default=(1, 10))


def _group(rng: random.Random, cloud: worlds.World, version: Version, suffix: str) -> Pairs:
    pairs: Pairs = []
    if not suffix or rng.random() < 0.85:
        classes = rng.sample(_CLASSES, rng.choice((1, 1, 2)))
        amounts = (f'{name}:{rng.randint(1, 4)}' for name in classes)
        pairs.append((f'resources{suffix}', ','.join(amounts)))
    for _ in range(rng.choice((0, 0, 1, 2))):
        many = version >= ANY_TRAITS and rng.random() < 0.3
        value = f'in:{_names(rng)}' if many else _traits(rng, forbidden=version >= (1, 22))
        pairs.append((f'required{suffix}', value))
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        pairs.append((f'member_of{suffix}', _aggregates(rng, version)))
    if rng.random() < 0.1:
        name = rng.choice([host.name for host in cloud.hosts] + ['MISSING'])
        pairs.append((f'in_tree{suffix}', worlds.uuid_of(name)))
    return pairs


def _names(rng: random.Random) -> str:
    return ','.join(worlds.trait(name) for name in rng.sample(_TRAITS, rng.randint(1, 2)))


def _traits(rng: random.Random, forbidden: bool) -> str:
    """Return required and forbidden traits, of which each can be repeated."""
    items: Sequence[str] = [worlds.trait(rng.choice(_TRAITS)) for _ in range(rng.randint(1, 2))]
    if forbidden:
        items = [('!' if rng.random() < 0.3 else '') + item for item in items]
    return ','.join(items)


def _aggregates(rng: random.Random, version: Version) -> str:
    mark = '!' if version >= (1, 32) and rng.random() < 0.4 else ''
    uuids = [worlds.uuid_of(rng.choice((*_AGGREGATES, 'UNKNOWN'))) for _ in range(2)]
    return f'{mark}in:{",".join(uuids)}' if rng.random() < 0.5 else mark + uuids[0]
