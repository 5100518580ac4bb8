"""Random clouds with consumers, and random changes; the same seed gives the same case."""

from collections.abc import Sequence
from dataclasses import dataclass
import random
from urllib import parse

import sqlalchemy as sa

from placement.tests import worlds
from placement.tests.unit.admin.headroom import clouds
from placement.tests.worlds import rows as world_rows

QUERIES = 4
_CLASSES = tuple(worlds.CLASSES[name] for name in clouds.CLASSES)
_TRAITS = tuple(worlds.trait(name) for name in (*clouds.TRAITS, 'SHARE'))
_AGGREGATES = tuple(worlds.uuid_of(name) for name in (*clouds.AGGREGATES, 'C'))
_VALUES: dict[str, Sequence[float]] = {
    'total': (1, 2, 4, 8, 16, 40),
    'reserved': (0, 0, 1, 3),
    'min_unit': (1, 2),
    'max_unit': (1, 1, 20),
    'step_size': (1, 2),
    # Single precision does not store all of these ratios.
    'allocation_ratio': (0.25, 0.7, 1, 2, 4.0, 1.23456789, -1),
}


@dataclass(frozen=True)
class Case:
    """A cloud, changes in the form of `--assume`, and queries."""

    world: worlds.World
    changes: tuple[str, ...]
    queries: tuple[clouds.Case, ...]


def case(seed: int) -> Case:
    rng = random.Random(seed)
    queries = [clouds.case(rng.randrange(10**9)) for _ in range(QUERIES)]
    world = queries[0].world
    changes = tuple(_change(rng, world) for _ in range(rng.choice((1, 2, 3, 4))))
    return Case(world, changes, tuple(queries))


def _change(rng: random.Random, world: worlds.World) -> str:
    return rng.choice((_without, _copies, _set, _set, _set, _trait, _aggregate))(rng, world)


def _without(rng: random.Random, world: worlds.World) -> str:
    return f'without:{_provider(rng, world)}'


def _copies(rng: random.Random, world: worlds.World) -> str:
    return f'copies:{rng.randint(1, 3)}*{_provider(rng, world)}'


def _provider(rng: random.Random, world: worlds.World) -> str:
    host = rng.choice(world.hosts)
    if rng.random() < 0.08:
        return f'{host.name}-copy-1'
    return rng.choice((host.name, host.uuid, host.uuid.upper()))


def _set(rng: random.Random, world: worlds.World) -> str:
    name = 'CUSTOM_UNKNOWN' if rng.random() < 0.01 else rng.choice(_CLASSES)
    field = rng.choice(('total', 'total', *_VALUES))
    return f'set:{name}.{field}={rng.choice(_VALUES[field])}{_filter(rng, world)}'


def _trait(rng: random.Random, world: worlds.World) -> str:
    name = 'CUSTOM_UNKNOWN' if rng.random() < 0.01 else rng.choice(_TRAITS)
    return f'trait:{rng.choice("+-")}{name}{_filter(rng, world)}'


def _aggregate(rng: random.Random, world: worlds.World) -> str:
    return f'aggregate:{rng.choice("+-")}{rng.choice(_AGGREGATES)}{_filter(rng, world)}'


def _filter(rng: random.Random, world: worlds.World) -> str:
    if rng.random() < 0.4:
        return ''
    # Most filters match this provider.
    host = rng.choice(world.hosts)
    traits = [worlds.trait(name) for name in host.traits] or _TRAITS
    aggregates = [worlds.uuid_of(name) for name in host.aggregates] or _AGGREGATES
    absent = [trait for trait in _TRAITS if trait not in traits] or _TRAITS
    pairs = rng.choices(
        (
            ('name', host.name),
            ('uuid', host.uuid),
            ('in_tree', host.uuid),
            ('member_of', rng.choice(aggregates)),
            ('member_of', f'in:{",".join(_AGGREGATES[:2])}'),
            ('member_of', f'!{_AGGREGATES[2]}'),
            ('required', rng.choice(traits)),
            ('required', f'!{rng.choice(absent)}'),
            ('required', f'in:{",".join(_TRAITS[:2])}'),
            ('resources', f'{rng.choice(_CLASSES)}:{rng.randint(1, 2)}'),
        ),
        k=rng.choice((1, 1, 1, 2)),
    )
    return f'?{parse.urlencode(pairs)}'


# Rows -----------------------------------------------------------------------------


def fill(engine: sa.Engine, world: worlds.World, seed: int) -> None:
    """Replace the providers and consumers of the database by a world.

    A consumer has allocations on several providers, also of several trees.
    """
    rng = random.Random(seed)
    allocations: list[dict[str, dict[str, int]]] = [{}, {}, {}]
    for (provider, name), used in world.other_usage.items():
        rng.choice(allocations).setdefault(provider, {})[name] = used
    consumers = (worlds.Consumer(f'consumer {n}', one) for n, one in enumerate(allocations) if one)
    world_rows.fill(engine, worlds.World(world.hosts, tuple(consumers)))
