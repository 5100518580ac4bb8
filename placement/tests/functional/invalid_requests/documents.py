"""JSON documents that may be invalid, and changes at any place in them."""

from collections.abc import Iterator
import json
from typing import Any

from placement.tests.functional.invalid_requests import values
from placement.tests.functional.invalid_requests.values import HOST


class Raw(str):
    """Text that `dump` writes unchanged, whether it is JSON or not."""


class Pairs(list[tuple[Any, Any]]):
    """A JSON object in which a key may be repeated."""


def dump(value: Any) -> str:
    """Return the JSON text of a document that may contain Raw and Pairs."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs):
        return '{' + ','.join(f'{dump(key)}:{dump(item)}' for key, item in value) + '}'
    if isinstance(value, list):
        return '[' + ','.join(map(dump, value)) + ']'
    return json.dumps(value)


VALUES: list[Any] = [
    *(None, True, 0, -1, 1.5, 2.0, -0.0, 2**31, 2**63, 2**64, -(2**63) - 1),
    # Numbers, texts, and others that are no JSON, or not of the size that they seem to have.
    *map(Raw, ('1' + '0' * 400, '1e400', '1e308', 'NaN', '-Infinity', 'nonsense', '', '01')),
    *map(Raw, ('"\t"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"CUSTOM_A\\u0000"')),
    *map(Raw, ('[' * 200 + ']' * 200, '{"a":' * 200 + '1' + '}' * 200)),
    *values.TEXTS,
    *([], {}, [None], [[]], [{}], [''], [1, 'x', None], ['x' * 300]),
    *({'': ''}, {'x': {}}, {'\U0001f600': 1}, {HOST: 1}, {HOST: {'resources': {'VCPU': 1}}}),
    *({'VCPU': 1}, {'VCPU': 2**64}, {'VCPU': {'total': 2**64}}),
    *({'vcpu': 1}, {'vcpu': {'total': 1}}),
    Pairs([('VCPU', 1), ('VCPU', 'x')]),
]
KEYS: list[Any] = [
    value for value in VALUES if isinstance(value, str) and value not in ('', 'nonsense', '01')
]

# The keys and indexes that lead to a value.
Place = tuple[Any, ...]


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Generate all places in a document, the document itself first."""
    yield here
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*here, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*here, index))


def replaced(value: Any, place: Place, new: Any) -> Any:
    """Return a copy of a document with another value at a place."""
    if not place:
        return new
    head, *rest = place
    if isinstance(value, dict):
        return value | {head: replaced(value[head], tuple(rest), new)}
    return [
        replaced(item, tuple(rest), new) if index == head else item
        for index, item in enumerate(value)
    ]


def at(value: Any, place: Place) -> Any:
    """Return the value at a place."""
    for step in place:
        value = value[step]
    return value


BODIES: list[bytes] = [
    b'',
    b' ',
    b'\x00',
    b'\xff\xfe{}',
    b'\xef\xbb\xbf{}',
    b'{"name": "\xff"}',
    b'{"name": "\xed\xa0\x80"}',
    b'{"name": "\xf0\x9f\x98"}',
    b'{',
    b'{}{}',
    b'{"a": 1,}',
    b'[' * 100_000,
    b'[' * 100_000 + b']' * 100_000,
    b'{"a":' * 50_000 + b'1' + b'}' * 50_000,
    b'"' + b'x' * 2_000_000 + b'"',
    b'[' + b'1,' * 500_000 + b'1]',
    b'{' + b','.join(b'"%d":1' % number for number in range(100_000)) + b'}',
    b'9' * 1_000_000,
    b'{"name": "x", "name": ' + b'9' * 5_000 + b'}',
]
