"""Expensive requests of at most 1 MiB for the cloud of `cloud`: designed and random ones."""

from collections.abc import Callable, Iterable, Iterator
import itertools
import json
import random

from placement.tests.wsgi_client import Request
from tools.hostile.cloud import DEEP, POOLS, TRAITS, WIDE, WIDTH
from tools.perf.worlds import name_based

LONGEST = 2**20
_WIDE_UUID = name_based('wide-0')
_DEEP_UUID = name_based('deep-0')


def _get(parts: Iterable[str], path: str = '/allocation_candidates') -> Request:
    return Request('GET', path, '&'.join(parts)[:LONGEST])


def _groups(suffixes: Iterable[str], resources: str, policy: str = 'none') -> list[str]:
    return [f'group_policy={policy}', *(f'resources{suffix}={resources}' for suffix in suffixes)]


def _suffixes(count: int) -> list[str]:
    return [f'_{number}' for number in range(count)]


def _pairs(suffixes: list[str]) -> list[str]:
    return [f'same_subtree={a},{b}' for a, b in itertools.pairwise(suffixes)]


def _long(count: int) -> list[str]:
    return [f'_{number:063d}' for number in range(count)]


def designed() -> Iterator[tuple[str, Request]]:
    """Yield the designed requests with their names."""
    for requests in (_searches(), _subtrees(), _long_lists(), _other_routes()):
        yield from requests.items()


def _searches() -> dict[str, Request]:
    four = ','.join(f'{name}:1' for name in WIDE)
    three = [f'_{number}' for number in range(3)]
    uneven = [f'resources_{n}={WIDE[0]}:{333_000 + n}' for n in range(40)]
    return {
        'hosts x 15 x 15 sharing providers': _get(['resources=VCPU:1,DISK_GB:1,IPV4_ADDRESS:1']),
        '2 groups, 1,000 children': _get(_groups('12', f'{WIDE[0]}:1')),
        '2 groups, 4 classes, long suffixes': _get(_groups(_long(2), four)),
        '3 groups, isolated': _get(_groups(three, f'{WIDE[0]}:1', 'isolate')),
        '4 classes, unsuffixed': _get([f'resources={four}']),
        '400 groups, hosts': _get(_groups(_suffixes(400), 'VCPU:1')),
        '400 groups, long suffixes, hosts': _get(_groups(_long(400), 'VCPU:1')),
        '10,000 groups, hosts': _get(_groups(_suffixes(10_000), 'VCPU:1')),
        '10,000 groups, pools': _get(_groups(_suffixes(10_000), 'DISK_GB:1')),
        '10,000 groups, children': _get(_groups(_suffixes(10_000), f'{WIDE[0]}:1')),
        '10,000 groups, children, isolated': _get(
            _groups(_suffixes(10_000), f'{WIDE[0]}:1', 'isolate')
        ),
        '990 groups, children, isolated': _get(_groups(_suffixes(990), four, 'isolate')),
        '1,001 groups, isolated': _get(_groups(_suffixes(1_001), f'{WIDE[0]}:1', 'isolate')),
        '2,000 groups, 1.33': _get(_groups(map(str, range(1, 2001)), f'{WIDE[0]}:1')).__class__(
            'GET',
            '/allocation_candidates',
            '&'.join(_groups(map(str, range(1, 2001)), f'{WIDE[0]}:1')),
            version='1.33',
        ),
        '40 groups of a third each': _get(['group_policy=none', *uneven]),
        '40 different groups': _get(
            ['group_policy=isolate']
            + [f'resources_{n}={WIDE[n % 4]}:{n + 1}&required_{n}=!{TRAITS[n]}' for n in range(40)]
        ),
        '1.28, 2 classes': Request(
            'GET', '/allocation_candidates', 'resources=DISK_GB:1,IPV4_ADDRESS:1', version='1.28'
        ),
        '1.12, 3 classes': Request(
            'GET',
            '/allocation_candidates',
            'resources=VCPU:1,DISK_GB:1,IPV4_ADDRESS:1',
            version='1.12',
        ),
        '1.10, 3 classes': Request(
            'GET',
            '/allocation_candidates',
            'resources=VCPU:1,DISK_GB:1,IPV4_ADDRESS:1',
            version='1.10',
        ),
        'plain query': _get(['resources=VCPU:1,MEMORY_MB:1']),
    }


def _subtrees() -> dict[str, Request]:
    many, deep = _suffixes(400), f'{DEEP}:1'
    top = [f'resources_{n}={deep}' for n in range(2)]
    resourceless = [f'required_R{n}=!{TRAITS[0]}' for n in range(300)]
    listed = ','.join(['_0', '_1', *(f'_R{n}' for n in range(300))])
    return {
        '400 groups, 398 same_subtree, deep': _get(_groups(many, deep) + _pairs(many)[:398]),
        '400 groups, 398 same_subtree, isolated': _get(
            _groups(many, deep, 'isolate') + _pairs(many)[:398]
        ),
        '400 groups, 1 same_subtree': _get(
            [*_groups(many, deep), f'same_subtree={",".join(many)}']
        ),
        '400 groups, 1 same_subtree, isolated': _get(
            [*_groups(many, deep, 'isolate'), f'same_subtree={",".join(many)}']
        ),
        '1,200 groups, 1,199 same_subtree': _get(
            _groups(_suffixes(1200), deep) + _pairs(_suffixes(1200))
        ),
        '1,001 groups, same_subtree, isolated': _get(
            [
                *_groups(_suffixes(1001), deep, 'isolate'),
                f'same_subtree={",".join(_suffixes(1001)[:500])}',
                f'same_subtree={",".join(_suffixes(1001)[400:])}',
            ]
        ),
        '300 groups without resources': _get(
            ['group_policy=none', *top, *resourceless, f'same_subtree={listed}']
        ),
        '60 groups, all pairs same_subtree': _get(
            _groups(_suffixes(60), deep)
            + [f'same_subtree={a},{b}' for a in _suffixes(60) for b in _suffixes(60) if a < b]
        ),
        '200 groups, wide, same_subtree': _get(
            _groups(_suffixes(200), f'{WIDE[0]}:1') + _pairs(_suffixes(200))
        ),
        'different amounts, deep, 398 same_subtree': _get(
            [
                'group_policy=none',
                *(f'resources{s}={DEEP}:{n + 1}' for n, s in enumerate(many)),
                *_pairs(many)[:398],
            ]
        ),
    }


def _long_lists() -> dict[str, Request]:
    uuids = [name_based(f'x-{number}') for number in range(27_000)]
    some = ','.join(uuids)
    one = f'resources={WIDE[0]}:1'
    any_of = ','.join(TRAITS)
    sets = [f'required=in:{TRAITS[a]},{TRAITS[b]}' for a in range(200) for b in range(a + 1, 200)][
        :18_000
    ]
    members = [
        f'member_of=in:{name_based("aggregate-1")},{name_based("aggregate-2")}'
        for _ in range(9_000)
    ]
    return {
        'member_of=in: 27,000 aggregates': _get([one, f'member_of=in:{some}']),
        'member_of=!in: 27,000 aggregates': _get([one, f'member_of=!in:{some}']),
        '13,000 member_of': _get([one, *(f'member_of={uuid}' for uuid in uuids[:13_000])]),
        '9,000 equal member_of': _get([one, *members]),
        '18,000 required=in:': _get([one, *sets]),
        '18,000 required=in:, 4 classes': _get(
            ['resources=' + ','.join(f'{c}:1' for c in WIDE), *sets]
        ),
        '18,000 required_1=in:': _get(
            [f'resources_1={WIDE[0]}:1', *(part.replace('d=', 'd_1=') for part in sets)]
        ),
        '200 groups required=in: 200 traits': _get(
            ['group_policy=isolate']
            + [
                f'resources_{n}={WIDE[0]}:1&required_{n}=in:{any_of[: 3000 - n * 18]}'.rsplit(
                    ',', 1
                )[0]
                for n in range(150)
            ]
        ),
        '3,000 different groups': _get(
            ['group_policy=none']
            + [
                f'resources_{n}={WIDE[n % 4]}:{n + 1}&required_{n}=in:{TRAITS[n % 199]},'
                f'{TRAITS[n % 199 + 1]}'
                for n in range(3_000)
            ]
        ),
        '9,000 different groups': _get(
            ['group_policy=none', *(f'resources_{n}={WIDE[0]}:{n + 1}' for n in range(9_000))]
        ),
        '9,000 groups in_tree': _get(
            ['group_policy=none']
            + [f'resources_{n}={WIDE[0]}:1&in_tree_{n}={_WIDE_UUID}' for n in range(9_000)]
        ),
        '2,000 groups in_tree of different trees': _get(
            ['group_policy=none']
            + [
                f'resources_{n}=DISK_GB:1&in_tree_{n}={name_based(f"pool-{n % POOLS}")}'
                for n in range(2_000)
            ]
        ),
        '1 MiB of unknown classes': _get(
            ['resources=' + ','.join(f'CUSTOM_{n}:1' for n in range(60_000))]
        ),
        '70,000 equal required': _get([one, 'required=' + ','.join([TRAITS[1]] * 60_000)]),
        'same_subtree of 100,000 items': _get(
            [*_groups('12', f'{WIDE[0]}:1'), 'same_subtree=' + ','.join(['1', '2'] * 250000)]
        ),
        '200,000 empty keys': _get([one, *(['x='] * 200_000)]),
    }


def _other_routes() -> dict[str, Request]:
    return {
        **_provider_filters(),
        **_bodies(),
    }


def _provider_filters() -> dict[str, Request]:
    uuids = ','.join(name_based(f'host-{number}') for number in range(27_000))
    both = [f'required=in:{TRAITS[a]},{TRAITS[b]}' for a in range(200) for b in range(a + 1, 200)]
    path = '/resource_providers'
    return {
        'all providers': _get([], path),
        'providers, member_of=in: 27,000': _get([f'member_of=in:{uuids}'], path),
        'providers, member_of=!in: 27,000': _get([f'member_of=!in:{uuids}'], path),
        'providers, 18,000 required': _get(both, path),
        'providers, 9,000 member_of': _get(
            [f'member_of={name_based(f"host-{number}")}' for number in range(9_000)], path
        ),
        'providers, 200 classes': _get(
            ['resources=' + ','.join(f'{c}:1' for c in (*WIDE, DEEP))], path
        ),
        'traits, name=in: 1 MiB': _get(
            ['name=in:' + ','.join(f'CUSTOM_{n}' for n in range(60_000))], '/traits'
        ),
        'usages': _get(['project_id=x'], '/usages'),
    }


def _bodies() -> dict[str, Request]:
    consumer = {'project_id': 'p', 'user_id': 'u', 'consumer_generation': None}
    typed = {**consumer, 'consumer_type': 'INSTANCE'}
    children = [name_based(f'wide-0-{number}') for number in range(WIDTH)]
    many = {name_based(f'host-{n}'): {'resources': {'VCPU': 1}} for n in range(14_000)}
    four = {uuid: {'resources': dict.fromkeys(WIDE, 1)} for uuid in children}
    consumers = {
        name_based(f'consumer-{n}'): {
            **typed,
            'allocations': {children[n % WIDTH]: {'resources': {WIDE[0]: 1}}},
        }
        for n in range(4_700)
    }
    return {
        'PUT allocations of 10,000 hosts': _send(
            'PUT',
            f'/allocations/{name_based("c")}',
            {**typed, 'allocations': dict(list(many.items())[:10_000])},
        ),
        'PUT allocations of 14,000 hosts, 4,000 unknown': _send(
            'PUT', f'/allocations/{name_based("c")}', {**typed, 'allocations': many}
        ),
        'PUT allocations, 4 classes': _send(
            'PUT', f'/allocations/{name_based("c")}', {**typed, 'allocations': four}
        ),
        'POST allocations of 4,700 consumers': _send('POST', '/allocations', consumers),
        'reshaper, 4,000 consumers': _send(
            'POST',
            '/reshaper',
            {'inventories': {}, 'allocations': dict(list(consumers.items())[:4_000])},
        ),
        'reshaper, inventories of 1,000 children': _send(
            'POST',
            '/reshaper',
            {
                'inventories': {
                    uuid: {
                        'resource_provider_generation': 1,
                        'inventories': {name: {'total': 1_000_000} for name in WIDE},
                    }
                    for uuid in children
                },
                'allocations': dict(list(consumers.items())[:3_000]),
            },
        ),
        'PUT inventories of unknown classes': _send(
            'PUT',
            f'/resource_providers/{_WIDE_UUID}/inventories',
            {
                'resource_provider_generation': 1,
                'inventories': {f'CUSTOM_{n}': {'total': 1} for n in range(35_000)},
            },
        ),
        'PUT 25,000 aggregates': _send(
            'PUT',
            f'/resource_providers/{_DEEP_UUID}/aggregates',
            {
                'resource_provider_generation': 1,
                'aggregates': [name_based(f'new-{n}') for n in range(25_000)],
            },
        ),
        'PUT 60,000 unknown traits': _send(
            'PUT',
            f'/resource_providers/{_DEEP_UUID}/traits',
            {
                'resource_provider_generation': 1,
                'traits': [f'CUSTOM_X{n}' for n in range(60_000)],
            },
        ),
    }


def _send(method: str, path: str, document: object) -> Request:
    body = json.dumps(document, separators=(',', ':')).encode()
    assert len(body) <= LONGEST, (path, len(body))
    return Request(method, path, body=body)


# Random searches ----------------------------------------------------------------


def random_request(rng: random.Random) -> tuple[str, Request]:
    """Return a random search for allocation candidates, and its name."""
    seed = rng.getrandbits(32)
    rng = random.Random(seed)
    shape = rng.choice(_SHAPES)
    count = int(3_000 ** rng.random()) + 1
    suffixes = rng.choice((_suffixes, _long))(count)
    parts = [f'group_policy={rng.choice(("none", "isolate"))}']
    for suffix in suffixes:
        parts += shape(rng, suffix)
    if rng.random() < 0.5:
        for _ in range(int(count ** rng.random())):
            few = rng.sample(suffixes, min(count, rng.choice((2, 2, 3, 10, 100))))
            parts.append(f'same_subtree={",".join(few)}')
    if rng.random() < 0.3:
        parts.append(f'resources={_amounts(rng, rng.choice(_POOLS_OF_CLASSES))}')
    version = rng.choice(('latest', 'latest', '1.36'))
    query = '&'.join(parts)
    if len(query) > LONGEST:
        return random_request(rng)
    request = Request('GET', '/allocation_candidates', query, version=version)
    return f'random {seed}: {shape.__name__}, {count} groups', request


_POOLS_OF_CLASSES = (WIDE, (DEEP,), ('VCPU', 'MEMORY_MB'), ('DISK_GB', 'IPV4_ADDRESS'))
_Shape = Callable[[random.Random, str], list[str]]


def _amounts(rng: random.Random, classes: tuple[str, ...]) -> str:
    few = rng.sample(classes, rng.randint(1, len(classes)))
    return ','.join(f'{name}:{rng.choice((1, 1, 2, 1000, 400_000))}' for name in few)


def _wide(rng: random.Random, suffix: str) -> list[str]:
    return [f'resources{suffix}={_amounts(rng, WIDE)}']


def _equal_wide(_rng: random.Random, suffix: str) -> list[str]:
    return [f'resources{suffix}={WIDE[0]}:1']


def _traits(rng: random.Random, suffix: str) -> list[str]:
    few = ','.join(rng.sample(TRAITS, rng.choice((1, 2, 10))))
    return [f'resources{suffix}={_amounts(rng, WIDE)}', f'required{suffix}=in:{few}']


def _members(rng: random.Random, suffix: str) -> list[str]:
    mark = rng.choice(('', '!'))
    return [
        f'resources{suffix}={_amounts(rng, WIDE)}',
        f'member_of{suffix}={mark}{name_based("aggregate-2")}',
    ]


def _deep(rng: random.Random, suffix: str) -> list[str]:
    return [f'resources{suffix}={DEEP}:{rng.choice((1, 1, 2, 400_000))}']


def _pools(rng: random.Random, suffix: str) -> list[str]:
    return [f'resources{suffix}={_amounts(rng, ("DISK_GB", "IPV4_ADDRESS"))}']


def _hosts(rng: random.Random, suffix: str) -> list[str]:
    return [f'resources{suffix}={_amounts(rng, ("VCPU", "MEMORY_MB"))}']


def _mixed(rng: random.Random, suffix: str) -> list[str]:
    return rng.choice((_hosts, _pools))(rng, suffix)


_SHAPES: tuple[_Shape, ...] = (
    _wide,
    _equal_wide,
    _traits,
    _members,
    _deep,
    _deep,
    _pools,
    _hosts,
    _mixed,
)
