"""Random changes of `--assume` in random clouds; the same seed gives the same changes."""

from collections.abc import Sequence
import random
from urllib import parse

from placement.tests import worlds
from placement.tests.worlds import seeded

_CLASSES = tuple(worlds.CLASSES[name] for name in seeded.CLASSES)
_TRAITS = tuple(worlds.trait(name) for name in (*seeded.TRAITS, 'SHARE'))
_AGGREGATES = tuple(worlds.uuid_of(name) for name in (*seeded.AGGREGATES, 'C'))
_VALUES: dict[str, Sequence[float]] = {
    'total': (1, 2, 4, 8, 16, 40),
    'reserved': (0, 0, 1, 3),
    'min_unit': (1, 2),
    'max_unit': (1, 1, 20),
    'step_size': (1, 2),
    # Single precision does not store all of these ratios.
    'allocation_ratio': (0.25, 0.7, 1, 2, 4.0, 1.23456789, -1),
}


def changes(rng: random.Random, world: worlds.World) -> tuple[str, ...]:
    """Return up to four changes, some of which are not possible."""
    return tuple(_change(rng, world) for _ in range(rng.choice((1, 2, 3, 4))))


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
