"""Generates random requests: hostile requests of all kinds, and valid queries of any length.

A request depends only on the random numbers of the caller and on the generations that the service
reports, so the same seed sends the same requests to the same database.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
import json
import random
from typing import Any
from urllib.parse import quote

import os_resource_classes
import os_traits

from placement.tests.functional.invalid_requests import documents, valid_writes, values
from placement.tests.wsgi_client import Request

MOST_BYTES = 8 * 1024  # the longest valid query
LARGEST_BODY = 2**20  # bytes

CLASSES: list[str] = ['VCPU', 'MEMORY_MB', 'DISK_GB', 'VGPU', 'SRIOV_NET_VF', 'CUSTOM_A']
TRAITS: list[str] = ['CUSTOM_T', *os_traits.get_traits('HW_CPU_X86_')]
ALL_TRAITS: list[str] = os_traits.get_traits()
ALL_CLASSES: list[str] = list(os_resource_classes.STANDARDS)


def numbered(number: int) -> str:
    """Return a uuid of the generated cloud: providers from 1, aggregates from 1,000."""
    return f'7b9e1d1c-0000-4000-8000-{number:012d}'


PROVIDERS = [numbered(number) for number in range(1, 14) if numbered(number) != values.NEW_PROVIDER]
AGGREGATES = [values.AGGREGATE, *(numbered(number) for number in range(1000, 1004))]
CONSUMERS = [
    values.CONSUMER,
    values.NEW_CONSUMER,
    *(numbered(number) for number in range(2000, 2020)),
]


# Values -----------------------------------------------------------------------

_ALPHABETS = [
    'abcdefghijklmnopqrstuvwxyz',
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789',
    ''.join(map(chr, range(32))) + '\x7f\x80\x85\x9f',
    '"\'\\/<>&%;,:=!?#{}[]()$`|*+ ',
    '\u0301\u0308\u0323\u20dd',  # combining marks
    '\u05d0\u0627\u202e\u200f\u2066',  # right to left
    '\U0001f600\U00020000\U0010ffff\U000e0001',  # four bytes in UTF-8
    '\u2460\ufb01\u00b2\u00df\u0130\u0131\ufeff\u2028\ufffe',
]
_SURROGATES = '\ud800\udbff\udc00\udfff'
_POWERS = (7, 8, 15, 16, 31, 32, 53, 63, 64, 127, 128, 1023, 1024)
_RAW_NUMBERS = ['1e308', '1e309', '-1e309', '5e-324', '-0', '1.0', '0e0', 'NaN', '1' * 5_000]


def number(rng: random.Random) -> Any:
    """Return an integer or a float at a boundary, or text that resembles a JSON number."""
    if rng.random() < 0.3:
        return documents.Raw(rng.choice(_RAW_NUMBERS))
    value = rng.choice((1, -1)) * (2 ** rng.choice(_POWERS) + rng.choice((-1, 0, 1)))
    return value if rng.random() < 0.8 else rng.choice((0, 1, 0.5, -1.5, 3.4028235e38))


def text(rng: random.Random, longest: int = 300, surrogates: bool = True) -> str:
    """Return up to `longest` characters of one or two alphabets; short texts are more likely."""
    alphabet = ''.join(rng.sample(_ALPHABETS, rng.choice((1, 1, 2))))
    if surrogates and rng.random() < 0.1:
        alphabet += _SURROGATES
    return ''.join(rng.choices(alphabet, k=int(longest ** rng.random())))


def document(rng: random.Random, depth: int = 4) -> Any:
    """Return a random JSON document."""
    kind = rng.randrange(8 if depth else 5)
    if kind < 2:
        return rng.choice(documents.VALUES)
    if kind == 2:
        return number(rng)
    if kind < 5:
        return text(rng, 20_000 if rng.random() < 0.01 else 300)
    items = [document(rng, depth - 1) for _ in range(int(20 ** rng.random()))]
    if kind < 7:
        return documents.Pairs((_key(rng), item) for item in items)
    return items


def _key(rng: random.Random) -> str:
    likely = (*CLASSES, *PROVIDERS, *CONSUMERS, 'allocations', 'resources', 'inventories', 'name')
    return rng.choice(likely) if rng.random() < 0.5 else text(rng, 60)


def _large_body(rng: random.Random) -> bytes:
    unit = rng.choice(
        [b'[],', b'{},', b'"x",', b'1,', b'[[[[', b'{"a":', b'"\\ud83d\\ude00",', b'{"VCPU":1},']
    )
    body = b'[' + unit * (rng.randint(1, LARGEST_BODY) // len(unit))
    return body if rng.random() < 0.3 else body.rstrip(b',') + b']'


# Hostile requests -------------------------------------------------------------

# The length in bytes at which a query string is cut off, because web servers reject longer ones.
_LONGEST_QUERY = 64 * 1024


class Generator:
    """Generates hostile requests of all kinds.

    :param rng: the source of all random decisions
    :param now: reads generations, so that many writes succeed
    """

    def __init__(self, rng: random.Random, now: valid_writes.Generations):
        self._rng = rng
        self._now = now
        # The functions for each part of a request, and how likely they are.
        self._kinds: dict[str, dict[Callable[[], Request], int]] = {
            'body': {
                self._invalid_body: 24,
                self._any_body: 6,
                self._plain_write: 8,
                self._wrong_length: 3,
            },
            'query': {
                self._query: 22,
                self._long_query: 4,
                self._valid_query: 8,
                self._subtree_query: 3,
            },
            'path': {self._path: 10},
            'headers': {self._headers: 12, self._method: 3},
        }

    def request(self, *parts: str) -> Request:
        """Return the next request.

        :param parts: the parts that may be invalid: `body`, `query`, `path`, and `headers`; without
            any, one of all parts is invalid
        """
        kinds = [pair for part in parts or self._kinds for pair in self._kinds[part].items()]
        (kind,) = self._rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])
        request = kind()
        return replace(request, query=request.query[:_LONGEST_QUERY])

    def _write(self) -> tuple[valid_writes.Write, Any]:
        write = self._rng.choice(valid_writes.WRITES)
        return write, write.body(self._now)

    def _send(self, write: valid_writes.Write, body: bytes) -> Request:
        version = self._rng.choice(write.versions)
        path = write.path
        if self._rng.random() < 0.2:
            path = path.replace(values.HOST, self._rng.choice(PROVIDERS))
            path = path.replace(values.NEW_CONSUMER, self._rng.choice(CONSUMERS))
        return Request(write.method, path, body=body, version=version)

    def _plain_write(self) -> Request:
        write, body = self._write()
        if self._rng.random() < 0.3:
            # Claims of a new consumer are more frequent than those of another one.
            consumers = [*CONSUMERS, *[values.NEW_CONSUMER] * len(CONSUMERS)]
            paths = [f'/allocations/{consumer}' for consumer in consumers]
            paths += [f'/resource_providers/{provider}' for provider in PROVIDERS]
            return Request('DELETE', self._rng.choice(paths))
        return self._send(write, documents.dump(body).encode())

    def _invalid_body(self) -> Request:
        write, body = self._write()
        for _ in range(self._rng.choice((1, 1, 1, 2, 3))):
            place = self._rng.choice(list(documents.places(body)))
            try:
                body = documents.replaced(body, place, self._changed(documents.at(body, place)))
            except TypeError:
                break  # the place is inside Pairs that the previous change inserted
        return self._send(write, documents.dump(body).encode())

    def _changed(self, value: Any) -> Any:
        rng = self._rng
        if isinstance(value, dict) and rng.random() < 0.7:
            pairs = documents.Pairs(value.items())
            key = rng.choice(documents.KEYS) if rng.random() < 0.5 else _key(rng)
            member = (key, document(rng, 2))
            if pairs and rng.random() < 0.6:
                removed = pairs.pop(rng.randrange(len(pairs)))
                member = (key, removed[1])
            if rng.random() < 0.7:
                pairs.insert(rng.randint(0, len(pairs)), member)
            return pairs
        if isinstance(value, (int, float)) and rng.random() < 0.7:
            return number(rng)
        if isinstance(value, str) and rng.random() < 0.7:
            return text(rng)
        if isinstance(value, list) and rng.random() < 0.5:
            return value * rng.choice((0, 2, 50)) + [document(rng, 1)]
        return document(rng, 3)

    def _any_body(self) -> Request:
        write, _ = self._write()
        kind = self._rng.random()
        if kind < 0.4:
            body = documents.dump(document(self._rng, 6)).encode()
        elif kind < 0.7:
            body = self._rng.choice(documents.BODIES[:11])
        elif kind < 0.9:
            body = self._rng.randbytes(int(5_000 ** self._rng.random()))
        elif kind < 0.95:
            body = self._rng.choice(documents.BODIES[11:])
        else:
            body = _large_body(self._rng)
        return self._send(write, body)

    def _query(self) -> Request:
        rng = self._rng
        if rng.random() < 0.1:
            query = rng.choice(values.RAW_QUERIES)
            return Request('GET', rng.choice(list(values.QUERIES)), query=query)
        path = rng.choice([*values.QUERIES, '/allocation_candidates', '/resource_providers'])
        parameters = values.QUERIES[path]
        parts = [values.PLAIN_QUERIES[path]] if rng.random() < 0.7 else []
        for _ in range(rng.choice((1, 1, 2, 3, 6, 20))):
            name = rng.choice(list(parameters))
            if path == '/allocation_candidates' and rng.random() < 0.2:
                name = name.split('_')[0] + rng.choice(['_A', '_B', '1', '_' * 64, '_' * 65, 'ä'])
            value = (
                rng.choice(parameters[name])
                if name in parameters
                else rng.choice(values.CONDITIONS)
            )
            if rng.random() < 0.2:
                value = text(rng, surrogates=False)
            part = f'{self._quoted(name)}={self._quoted(value)}'
            parts += [part] * rng.choice((1,) * 20 + (2, 50))
        rng.shuffle(parts)
        version = rng.choice(valid_writes.VERSIONS) if rng.random() < 0.3 else 'latest'
        return Request('GET', path, query='&'.join(filter(None, parts)), version=version)

    def _quoted(self, value: str) -> str:
        if self._rng.random() < 0.02:
            return value.encode(errors='replace').decode('latin-1')
        return quote(value, safe=self._rng.choice(["-_:,!.~*'()", '', '&=;']))

    def _long_query(self) -> Request:
        """Return a query that is longer than most web servers accept, with an unknown parameter."""
        request = valid_query(self._rng, MOST_BYTES * 4)
        junk = self._rng.choice(['%', '&', '=', ':', ',', 'x', '%00', '%FF', '!', 'in:', ''])
        return replace(request, query=f'{request.query}&{junk}')

    def _valid_query(self) -> Request:
        return valid_query(self._rng, 1000)

    def _subtree_query(self) -> Request:
        """Return a query with up to thousands of same_subtree parameters.

        Some of the request groups have no resources.
        """
        rng = self._rng
        suffixes = [f'_{number}' for number in range(rng.choice((1, 2, 3, 8, 60, 200)))]
        parts = [f'group_policy={rng.choice(("none", "isolate"))}', f'limit={rng.randint(1, 50)}']
        for suffix in suffixes:
            if rng.random() < 0.8:
                parts.append(f'resources{suffix}={rng.choice(CLASSES)}:{rng.choice((1, 1, 7))}')
            if rng.random() < 0.3:
                parts.append(_condition(rng, suffix))
        for _ in range(int(3000 ** rng.random())):
            few = rng.sample(suffixes, min(len(suffixes), rng.choice((1, 2, 2, 3, 60))))
            parts += [f'same_subtree={",".join(few)}'] * rng.choice((1, 1, 1, 2, 1000))
        return Request('GET', '/allocation_candidates', query='&'.join(parts))

    def _path(self) -> Request:
        rng = self._rng
        segments = [
            rng.choice(values.SEGMENTS)
            if rng.random() < 0.7
            else text(rng, 100, surrogates=False).encode().decode('latin-1')
            for _ in range(2)
        ]
        method = rng.choice(values.METHODS[:4])
        if method == 'DELETE' and rng.random() < 0.8:
            method = 'GET'
        body = rng.choice([b'', b'{}', b'[]', b'null'])
        path = rng.choice(values.ROUTES).format(*segments)
        return Request(method, path, body=body, version=rng.choice(valid_writes.VERSIONS))

    def _headers(self) -> Request:
        rng = self._rng
        chosen = rng.sample(list(values.HEADERS), rng.choice((1, 1, 2, 4)))
        environ: dict[str, str | None] = {
            name: rng.choice(values.HEADERS[name])
            if rng.random() < 0.8
            else text(rng, 3_000, surrogates=False).encode().decode('latin-1')
            for name in chosen
        }
        # No client sends such a length, and the web server sets the prefix.
        if not (environ.get('CONTENT_LENGTH') or '0').isdigit():
            environ['CONTENT_LENGTH'] = rng.choice(values.HEADERS['CONTENT_LENGTH'])
        if 'SCRIPT_NAME' in environ:
            environ['SCRIPT_NAME'] = rng.choice(values.HEADERS['SCRIPT_NAME'])
        if rng.random() < 0.4:
            write, body = self._write()
            request = self._send(write, documents.dump(body).encode())
        else:
            request = Request('GET', rng.choice(_READS), query=rng.choice(['', 'name=x', '%FF']))
        return replace(request, environ=environ)

    def _method(self) -> Request:
        rng = self._rng
        paths = ['/', '', '//', '/nowhere', '*', 'http://x/', *_READS]
        method = rng.choice(values.METHODS[4:])
        return Request(method, rng.choice(paths), body=rng.choice([b'', b'{}']))

    def _wrong_length(self) -> Request:
        write, body = self._write()
        request = self._send(write, documents.dump(body).encode())
        length = len(request.body) + self._rng.choice((-1, -10, 1, 10, 2**20, 2**40))
        return replace(request, environ={'CONTENT_LENGTH': str(length)})


_READS = [
    '/resource_providers',
    f'/resource_providers/{values.HOST}',
    f'/resource_providers/{values.HOST}/inventories',
    f'/resource_providers/{values.HOST}/usages',
    f'/resource_providers/{values.HOST}/aggregates',
    f'/resource_providers/{values.HOST}/traits',
    f'/resource_providers/{values.HOST}/allocations',
    f'/allocations/{values.CONSUMER}',
    '/allocation_candidates',
    '/resource_classes',
    '/traits',
    '/usages',
    '/',
]


# Valid queries ----------------------------------------------------------------


def valid_query(rng: random.Random, most: int = MOST_BYTES) -> Request:
    """Return a query with the response 200 OK; short queries are more likely.

    :param most: the largest length of the query in bytes
    """
    length = int(most ** rng.uniform(0.4, 1))
    path = rng.choices(['/allocation_candidates', '/resource_providers', '/traits'], [8, 4, 1])[0]
    parts = _PARTS[path](rng, length)
    query = ''
    for part in parts:
        if query and len(query) + 1 + len(part) > length:
            break
        query = f'{query}&{part}' if query else part
    return Request('GET', path, query=query)


def _candidates(rng: random.Random, length: int) -> list[str]:
    parts = [f'resources={_amounts(rng)}', 'group_policy=' + rng.choice(['none', 'isolate'])]
    suffixes = [''] if rng.random() < 0.4 else _suffixes(rng)
    while sum(map(len, parts)) < length:
        suffix = rng.choice(suffixes)
        group = [f'resources{suffix}={_amounts(rng)}'] if suffix else []
        parts.append('&'.join([*group, _condition(rng, suffix)]))
    if rng.random() < 0.3:
        parts.insert(1, f'limit={rng.randint(1, 50)}')
    if rng.random() < 0.1:
        parts.insert(1, f'root_required={rng.choice(TRAITS)},!{rng.choice(ALL_TRAITS[:50])}')
    return parts


def _suffixes(rng: random.Random) -> list[str]:
    return ['', *(f'_{n}' for n in range(int(200 ** rng.random())))]


def _condition(rng: random.Random, suffix: str) -> str:
    kind = rng.random()
    if kind < 0.7:
        return f'required{suffix}={_required(rng)}'
    if kind < 0.95:
        return f'member_of{suffix}={_member_of(rng)}'
    return f'in_tree{suffix}={rng.choice(PROVIDERS)}'


def _required(rng: random.Random) -> str:
    pool = TRAITS if rng.random() < 0.7 else ALL_TRAITS
    few = rng.sample(pool, min(len(pool), int(40 ** rng.random())))
    if rng.random() < 0.5:
        return 'in:' + ','.join(few)
    # A trait that is both required and forbidden in a group is an error: forbid other traits.
    return ','.join(few[:3]) if rng.random() < 0.7 else f'!{rng.choice(_FORBIDDEN)}'


def _member_of(rng: random.Random) -> str:
    few = rng.sample(AGGREGATES, rng.randint(1, len(AGGREGATES)))
    return rng.choice(['', '!']) + 'in:' + ','.join(few)


def _amounts(rng: random.Random) -> str:
    count = 1 if rng.random() < 0.6 else int(20 ** rng.random())
    pool = CLASSES if rng.random() < 0.8 else ALL_CLASSES
    classes = rng.sample(pool, min(count, len(pool)))
    return ','.join(f'{name}:{rng.choice((1, 1, 2, 7, 1000))}' for name in classes)


def _providers(rng: random.Random, length: int) -> list[str]:
    parts = [f'resources={_amounts(rng)}'] if rng.random() < 0.7 else []
    while sum(map(len, parts)) < length:
        parts.append(
            f'required={_required(rng)}' if rng.random() < 0.8 else f'member_of={_member_of(rng)}'
        )
    return parts


def _traits(rng: random.Random, length: int) -> list[str]:
    return ['name=in:' + ','.join(rng.sample(ALL_TRAITS, min(length // 30 + 1, 250)))]


# These traits are never required, so that no group both requires and forbids a trait.
_FORBIDDEN = [f'CUSTOM_FORBIDDEN_{number}' for number in range(30)]
_PARTS: dict[str, Callable[[random.Random, int], list[str]]] = {
    '/allocation_candidates': _candidates,
    '/resource_providers': _providers,
    '/traits': _traits,
}


# The cloud --------------------------------------------------------------------


def cloud() -> Sequence[Request]:
    """Return the requests that create a small cloud with trees and a sharing provider.

    If a row exists, its request fails without effect. So the requests can be sent again to restore
    the rows that hostile requests deleted.
    """
    host, child, third = values.HOST, values.CHILD, PROVIDERS[2]
    parents = {child: host, third: child, PROVIDERS[4]: PROVIDERS[3], PROVIDERS[5]: PROVIDERS[3]}
    requests = [_put(f'/traits/{trait}') for trait in ('CUSTOM_T', *_FORBIDDEN)]
    requests.append(_put('/resource_classes/CUSTOM_A'))
    for index, provider in enumerate(PROVIDERS):
        requests.append(_post_provider(provider, parents.get(provider)))
        shared = index == len(PROVIDERS) - 1
        classes = ['DISK_GB'] if shared else _three(CLASSES, index)
        inventories = {name: valid_writes.inventory() for name in classes}
        traits = TRAITS[: 1 + index] + (['MISC_SHARES_VIA_AGGREGATE'] if shared else [])
        aggregates = list({AGGREGATES[index % len(AGGREGATES)], AGGREGATES[0]})
        parts = {'inventories': inventories, 'traits': traits, 'aggregates': aggregates}
        for generation, (part, value) in enumerate(parts.items()):
            body = {'resource_provider_generation': generation, part: value}
            requests.append(_put(f'/resource_providers/{provider}/{part}', body))
    return requests


def _three(pool: Sequence[str], index: int) -> list[str]:
    """Return three classes of the pool, which depend on the index."""
    return [pool[(index + step) % len(pool)] for step in range(3)]


def _post_provider(provider: str, parent: str | None) -> Request:
    body = {'uuid': provider, 'name': f'provider-{provider}', 'parent_provider_uuid': parent}
    return Request('POST', '/resource_providers', body=json.dumps(body).encode())


def _put(path: str, body: Any = None) -> Request:
    return Request('PUT', path, body=b'' if body is None else json.dumps(body).encode())
