"""A large cloud whose trees make searches for candidates expensive, and random searches in it.

The cloud has these providers:

* Flat hosts with VCPU and MEMORY_MB, all in one aggregate with 15 sharing providers of DISK_GB and
  IPV4_ADDRESS.
* Wide trees: a root with 1,000 children. Each child has the classes of `WIDE`. Each second child
  has a trait, and each third child is in an aggregate.
* Deep trees: 1,000 providers, each the child of the previous one, with the class `DEEP`.
"""

from collections.abc import Callable, Iterable
import random

from placement.tests.wsgi_client import Request
from tools.perf import service, worlds
from tools.perf.worlds import SHARING, name_based

WIDE = ('CUSTOM_W1', 'CUSTOM_W2', 'CUSTOM_W3', 'CUSTOM_W4')
DEEP = 'CUSTOM_DEEP'
TRAITS = tuple(f'CUSTOM_TRAIT_{number}' for number in range(200))
HOSTS, POOLS, TREES, WIDTH = 10_000, 15, 4, 1000
LONGEST = 2**20  # bytes of a query


def load(url: str, hosts: int = HOSTS) -> None:
    """Insert the cloud into an empty database."""
    engine = service.Service(url).engine
    with engine.begin() as conn:
        rows = worlds.Rows(worlds.ids_of_names(conn, (*WIDE, DEEP), TRAITS))
        for number in (1, 2):
            rows.add('placement_aggregates', id=number, uuid=name_based(f'aggregate-{number}'))
        for number in range(POOLS):
            shared = _inventories(('DISK_GB', 'IPV4_ADDRESS'))
            rows.add_provider(f'pool-{number}', None, None, [SHARING], [1], shared)
        for number in range(hosts):
            plain = _inventories(('VCPU', 'MEMORY_MB'))
            rows.add_provider(f'host-{number}', aggregates=[1], inventories=plain)
        for number in range(TREES):
            _add_wide_tree(rows, f'wide-{number}')
            _add_deep_tree(rows, f'deep-{number}')
        worlds.insert(conn, rows.take())
    engine.dispose()


def _inventories(classes: Iterable[str]) -> worlds.Inventories:
    return {name: {'total': 1_000_000} for name in classes}


def _add_wide_tree(rows: worlds.Rows, name: str) -> None:
    """Add a root with many children."""
    root = rows.add_provider(name)
    for number in range(WIDTH):
        traits = [TRAITS[number % len(TRAITS)]] if number % 2 else []
        aggregates = [] if number % 3 else [2]
        wide = _inventories(WIDE)
        rows.add_provider(f'{name}-{number}', root, root, traits, aggregates, wide)


def _add_deep_tree(rows: worlds.Rows, name: str) -> None:
    """Add providers of which each is the child of the previous one."""
    root = parent = rows.add_provider(name, inventories=_inventories([DEEP]))
    for number in range(1, WIDTH):
        deep = _inventories([DEEP])
        parent = rows.add_provider(f'{name}-{number}', root, parent, inventories=deep)


# Random searches --------------------------------------------------------------


def request(rng: random.Random) -> Request:
    """Return a random search for allocation candidates with up to 3,000 request groups."""
    shape = rng.choice(_SHAPES)
    count = int(3_000 ** rng.random()) + 1
    width = rng.choice((1, 63))
    suffixes = [f'_{number:0{width}d}' for number in range(count)]
    parts = [f'group_policy={rng.choice(("none", "isolate"))}']
    for suffix in suffixes:
        parts += (f'{name}{suffix}={value}' for name, value in shape(rng).items())
    if rng.random() < 0.5:
        for _ in range(int(count ** rng.random())):
            few = rng.sample(suffixes, min(count, rng.choice((2, 2, 3, 10, 100))))
            parts.append(f'same_subtree={",".join(few)}')
    if rng.random() < 0.3:
        parts.append(f'resources={_amounts(rng, rng.choice(_CLASSES))}')
    version = rng.choice(('latest', 'latest', '1.36'))
    query = '&'.join(parts)
    if len(query) > LONGEST:
        return request(rng)
    return Request('GET', '/allocation_candidates', query, version=version)


def _amounts(rng: random.Random, classes: tuple[str, ...]) -> str:
    few = rng.sample(classes, rng.randint(1, len(classes)))
    return ','.join(f'{name}:{rng.choice((1, 1, 2, 1000, 400_000))}' for name in few)


_HOST, _POOL = ('VCPU', 'MEMORY_MB'), ('DISK_GB', 'IPV4_ADDRESS')
_CLASSES = (WIDE, (DEEP,), _HOST, _POOL)
# Functions that return the parameters of a request group.
_SHAPES: tuple[Callable[[random.Random], dict[str, str]], ...] = (
    lambda rng: {'resources': _amounts(rng, WIDE)},
    lambda _rng: {'resources': f'{WIDE[0]}:1'},
    lambda rng: {
        'resources': _amounts(rng, WIDE),
        'required': f'in:{",".join(rng.sample(TRAITS, rng.choice((1, 2, 10))))}',
    },
    lambda rng: {
        'resources': _amounts(rng, WIDE),
        'member_of': f'{rng.choice(("", "!"))}{name_based("aggregate-2")}',
    },
    *(lambda rng: {'resources': f'{DEEP}:{rng.choice((1, 1, 2, 400_000))}'},) * 2,
    lambda rng: {'resources': _amounts(rng, _POOL)},
    lambda rng: {'resources': _amounts(rng, _HOST)},
    lambda rng: {'resources': _amounts(rng, rng.choice((_HOST, _POOL)))},
)
