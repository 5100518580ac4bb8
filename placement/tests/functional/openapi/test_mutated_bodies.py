"""The OpenAPI documents do not allow valid bodies after a change in one place."""

from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
import json
import re
from typing import Any

from oslotest import base

from placement import handler
from placement.tests import documented
from placement.tests.functional.invalid_requests.documents import Place, at, places, replaced
from placement.tests.functional.invalid_requests.valid_writes import WRITES, Write

_MAPPER = handler.Mapper(handler.ROUTE_DECLARATIONS)
_UUID = re.compile('[0-9a-f-]{36}')
# Changes that a schema does not find: the reason -> a pattern of the place and of the change.
UNNOTICED = {
    'the member is optional': (
        '.*: without (uuid|parent_provider_uuid|generation|mappings|reserved|min_unit|max_unit|'
        'step_size|allocation_ratio)'
    ),
    'POST /inventories ignores the generation': ': without resource_provider_generation',
    'other providers, consumers, and resource classes are valid': (
        '.*: without ([A-Z]+(_[A-Z]+)?|UUID)'
    ),
    'candidates determine the mappings of a request, which Placement ignores': (
        '.*mappings: without (_A)?|.*mappings/(/0)?: .*'
    ),
    'the generation is not the current one: 409 Conflict': '.*generation: (a negative number|null)',
    'the resource class or the trait does not exist: 400 Bad Request': (
        'resource_class: a long text|traits/.*: with a line break'
    ),
    'the name is empty: 400 Bad Request, with a message about the name': 'name: an empty text',
    'names, projects, and users can contain any characters': (
        '(.*/)?(name|project_id|user_id): with a line break'
    ),
    'the value is valid': (
        '.*reserved: a negative number|.*allocation_ratio: a (negative number|fraction)'
    ),
}


class _Unsent:
    """The generations in bodies that no service receives."""

    def generation(self, uuid: str) -> int:
        del uuid
        return 1

    def consumer_generation(self, uuid: str) -> int | None:
        del uuid
        return 1


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each change of a value, and the changed value."""
    if isinstance(value, dict):
        yield 'with another member', {**value, 'unexpected': 1}
        yield 'an array', [value]
        for name in value:
            yield f'without {name}', {one: value[one] for one in value if one != name}
    elif isinstance(value, list):
        yield 'with a number', [*value, 1]
        yield 'an object', {}
    elif isinstance(value, str):
        yield 'an empty text', ''
        yield 'a long text', value * 300
        yield 'with a line break', f'{value}\n'
        yield 'a number', 7
    else:
        yield 'a text', str(value)
        yield 'a negative number', -value
        yield 'a fraction', value + 0.5
        yield 'null', None
    yield 'a boolean', True


def bodies(write: Write) -> Iterator[tuple[str, Any]]:
    """Yield the place and the name of each change of the body of a request, and the body."""
    body = write.body(_Unsent())
    for place in places(body):
        for name, value in changes(at(body, place)):
            yield _UUID.sub('UUID', f'{_text(place)}: {name}'), replaced(body, place, value)


def _text(place: Place) -> str:
    return '/'.join(map(str, place))


def is_allowed(operation: documented.Described, body: Any) -> bool:
    """Return whether a document allows a body."""
    environ = {'REQUEST_METHOD': 'PUT', 'CONTENT_TYPE': 'application/json', 'CONTENT_LENGTH': '1'}
    sent = json.dumps(body).encode()
    exchange = documented.Exchange(environ, sent, HTTPStatus.OK, {}, b'')
    return not any(operation.body_problems(exchange))


class MutatedBodiesTest(base.BaseTestCase):
    def test_the_document_does_not_allow_changed_bodies(self):
        rejected, used = 0, Counter()
        for write in WRITES:
            match = _MAPPER.match(write.path)
            operation = documented.described(write.versions[-1], match[0].template, write.method)
            self.assertTrue(is_allowed(operation, write.body(_Unsent())), write)
            for change, body in bodies(write):
                if not is_allowed(operation, body):
                    rejected += 1
                    continue
                reasons = [
                    reason for reason, pattern in UNNOTICED.items() if re.fullmatch(pattern, change)
                ]
                self.assertEqual(1, len(reasons), (write.method, write.path, change))
                used[reasons[0]] += 1
        self.assertEqual(UNNOTICED.keys(), used.keys())
        self.assertGreater(rejected, 1000)
