"""The OpenAPI documents do not allow valid bodies after a change in one place."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
import functools
from http import HTTPStatus
import json
import re
from typing import Any

from oslotest import base
import yaml

from placement import handler
from placement.openapi import recorded
from placement.tests import documented, where
from placement.tests.functional.invalid_requests.documents import Place, at, places, replaced
from placement.tests.functional.invalid_requests.valid_writes import WRITES

_MAPPER = handler.Mapper(handler.ROUTE_DECLARATIONS)
_UUID = re.compile('[0-9a-f-]{36}')
# Changes that a schema does not find: the reason -> a pattern of the place and of the change.
IN_REQUESTS = {
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
IN_RESPONSES = {
    'the database can contain other objects': (
        '(.*/)?(allocations|inventories|provider_summaries|resources|usages|usages/[A-Za-z]+)'
        ': without ([A-Z_]+|UUID|unknown)|.*mappings: without [0-9]*'
    ),
    'the text can be any text': (
        '(.*/)?((name|id|href|project_id|user_id|consumer_type)|(traits|aggregates)/[0-9]+)'
        ': (an empty text|a long text|with a line break)'
    ),
    'the value is valid': (
        '(.*/)?(used|capacity|reserved|generation): a negative number'
        '|(.*/)?allocation_ratio: a (negative number|fraction)'
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
    elif value is None:
        yield 'an array', []
    else:
        yield 'a text', str(value)
        yield 'a negative number', -value
        yield 'a fraction', value + 0.5
        yield 'null', None
    yield 'a boolean', True


def changed(body: Any) -> Iterator[tuple[str, Any]]:
    """Yield the place and the name of each change of a body, and the body."""
    for place in places(body):
        for name, value in changes(at(body, place)):
            yield _UUID.sub('UUID', f'{_text(place)}: {name}'), replaced(body, place, value)


def _text(place: Place) -> str:
    return '/'.join(map(str, place))


def is_allowed_request(operation: documented.Described, body: Any) -> bool:
    """Return whether a document allows the body of a request."""
    environ = {'REQUEST_METHOD': 'PUT', 'CONTENT_TYPE': 'application/json', 'CONTENT_LENGTH': '1'}
    sent = json.dumps(body).encode()
    exchange = documented.Exchange(environ, sent, HTTPStatus.OK, {}, b'')
    return not any(operation.body_problems(exchange))


def is_allowed_response(
    operation: documented.Described, response: Mapping[str, Any], body: Any
) -> bool:
    """Return whether a document allows a recorded response with another body."""
    headers = {name.lower(): value for name, value in response['headers'].items()}
    status = HTTPStatus(response['status'])
    exchange = documented.Exchange({}, b'', status, headers, json.dumps(body).encode())
    return not any(operation.response_problems(exchange))


def recorded_responses() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield the method, path, microversion, and response of each example with a body."""
    for entry in yaml.safe_load((recorded.FOLDER / recorded.INDEX).read_text()):
        request, response = entry['request'], entry['response']
        if response['status'] < 300 and response['body'] is not None:
            path = request['url'].partition('?')[0]
            yield request['method'], path, entry['microversion'], response


@where.only_on('sqlite', reason='The web server does not depend on the database.')
class MutatedBodiesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.used = Counter()

    def rejected(
        self, body: Any, is_allowed: Callable[[Any], bool], reasons: dict[str, str]
    ) -> Iterator[str]:
        """Yield each change that is not allowed; require one reason for each other change."""
        self.assertTrue(is_allowed(body), body)
        for change, other in changed(body):
            if not is_allowed(other):
                yield change
                continue
            found = [one for one, pattern in reasons.items() if re.fullmatch(pattern, change)]
            self.assertEqual(1, len(found), change)
            self.used[found[0]] += 1

    def test_changed_requests(self):
        rejected = []
        for write in WRITES:
            match = _MAPPER.match(write.path)
            operation = documented.described(write.versions[-1], match[0].template, write.method)
            is_allowed = functools.partial(is_allowed_request, operation)
            rejected += self.rejected(write.body(_Unsent()), is_allowed, IN_REQUESTS)
        self.assertEqual(IN_REQUESTS.keys(), self.used.keys())
        self.assertGreater(len(rejected), 1000)

    def test_changed_responses(self):
        rejected = []
        for method, path, version, response in recorded_responses():
            operation = documented.described(version, _MAPPER.match(path)[0].template, method)
            is_allowed = functools.partial(is_allowed_response, operation, response)
            body = json.loads((recorded.FOLDER / response['body']).read_text())
            rejected += self.rejected(body, is_allowed, IN_RESPONSES)
        self.assertEqual(IN_RESPONSES.keys(), self.used.keys())
        self.assertGreater(len(rejected), 3000)
