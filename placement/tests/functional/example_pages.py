"""The requests and responses of the worked examples in the user guide.

The page `doc/source/user/guide-NAME.rst` shows requests of the gabbi file `guide-NAME.yaml`, unless
`request_forms.PAGES` names another page. The caption of a block is the name of the test in the
gabbi file, with a capital letter::

    .. code-block:: text
       :caption: Create the host

       POST /resource_providers
       {"name": "host", "uuid": "HOST"}

       200 OK
       {"uuid": "HOST", "name": "host", "generation": 0, "links": ...}

The comment at the top of the gabbi file gives each UUID a name, and the page shows the names. If
the request or the response of a block contains `"key": ...`, the values of this key are omitted.
The lists of responses, and the objects with UUIDs or names as keys, are sorted, because Placement
does not define their order. The gabbi files do not use templates such as `$RESPONSE`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
import json
from pathlib import Path
import re
from typing import Any

import webob
import yaml

import placement
from placement.tests.functional.fixtures import gabbits
from tools import request_forms

ROOT = Path(placement.__file__).parents[1]
FOLDER = ROOT / 'doc' / 'source' / 'user'
GABBITS = Path(__file__).parent / 'gabbits'
WIDTH = 92

# The UUID in the ID of a request is random, and has no name.
_UUID = '(?<!req-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
_NAME = re.compile(rf'^# +([A-Z][A-Z0-9_]*) +({_UUID})$', re.MULTILINE)
_BLOCK = re.compile(
    r'^\.\. code-block:: text\n   :caption: (?P<caption>.+)\n\n(?P<body>(?:\n*   .+\n)+)',
    re.MULTILINE,
)
_STATUS = re.compile(r'^ *[1-5]\d\d [A-Z]', re.MULTILINE)
_OMITTED_KEY = re.compile(r'"(\w+)": \.\.\.')
# The ID of a request is random. The links of all providers are alike.
_ALWAYS_OMITTED = frozenset(('links', 'request_id'))
_OMITTED = '<<omitted>>'


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request of a gabbi file and its response, with names in place of UUIDs."""

    request: str
    body: Any
    status: int
    response: Any


def guides() -> list[str]:
    """Return the names of the gabbi files that have a page."""
    return sorted(path.stem for path in GABBITS.glob('guide-*.yaml'))


def page(guide: str) -> Path:
    """Return the path of the page of a gabbi file."""
    return FOLDER / f'{request_forms.PAGES.get(guide, guide)}.rst'


def captions(text: str) -> list[str]:
    """Return the captions of the blocks of a page."""
    return [block['caption'] for block in _BLOCK.finditer(text)]


def record(guide: str) -> dict[str, Exchange]:
    """Send the requests of a gabbi file to an empty service and return them by their captions."""
    text = (GABBITS / f'{guide}.yaml').read_text()
    names = {uuid: name for name, uuid in _NAME.findall(text)}
    document = yaml.safe_load(text)
    service = gabbits.APIFixture()
    service.start_fixture()
    try:
        return {
            caption_of(test['name']): _named(names, _send(document['defaults'], test))
            for test in document['tests']
        }
    finally:
        service.stop_fixture()


def caption_of(test: str) -> str:
    """Return the caption of a test."""
    return test[0].upper() + test[1:]


def _send(defaults: dict[str, Any], test: dict[str, Any]) -> Exchange:
    (method,) = (key for key in test if key.isupper())
    request = webob.Request.blank(test[method], method=method)
    request.headers.update(defaults['request_headers'] | test.get('request_headers', {}))
    body = test.get('data')
    if body is not None:
        request.body = json.dumps(body).encode()
    response = request.get_response(gabbits.application)
    return Exchange(
        f'{method} {test[method]}',
        body,
        response.status_int,
        json.loads(response.body) if response.body else None,
    )


def _named(names: dict[str, str], exchange: Exchange) -> Exchange:
    def replaced(text: str) -> str:
        return re.sub(_UUID, lambda match: names[match[0]], text)

    response = json.loads(replaced(json.dumps(exchange.response)))
    return Exchange(
        replaced(exchange.request),
        json.loads(replaced(json.dumps(exchange.body))),
        exchange.status,
        _sorted(response),
    )


def _sorted(value: Any) -> Any:
    """Return a value with sorted lists and sorted names; other keys keep their order."""
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=json.dumps)
    if isinstance(value, dict):
        pairs = ((key, _sorted(item)) for key, item in value.items())
        return dict(sorted(pairs, key=lambda pair: '' if pair[0].islower() else pair[0]))
    return value


def updated(text: str, exchanges: dict[str, Exchange]) -> str:
    """Return a page in which each block shows the recorded request and response.

    :raises KeyError: no test of the gabbi file has the caption of a block
    """

    def block(match: re.Match[str]) -> str:
        head, _, _ = match[0].partition('\n\n')
        request, *response = _STATUS.split(match['body'], maxsplit=1)
        omitted = (_omitted_keys(request), _omitted_keys(''.join(response)))
        lines = rendered(exchanges[match['caption']], *omitted)
        return '\n'.join((head, '', *(f'   {line}'.rstrip() for line in lines), ''))

    return _BLOCK.sub(block, text)


def _omitted_keys(block: str) -> frozenset[str]:
    return _ALWAYS_OMITTED.union(_OMITTED_KEY.findall(block))


def rendered(
    exchange: Exchange, without: frozenset[str], response_without: frozenset[str]
) -> Iterator[str]:
    """Yield the lines that show a request and its response.

    :param without: the keys of the request whose values are replaced by three dots
    :param response_without: the same for the response
    """
    yield from _request_line(exchange.request).splitlines()
    if exchange.body is not None:
        yield from _document(exchange.body, without)
    yield ''
    yield f'{exchange.status} {HTTPStatus(exchange.status).phrase}'
    if exchange.response is not None:
        yield from _document(exchange.response, response_without)


def _request_line(line: str) -> str:
    """Return the method and the URL, with one parameter of the query in each line if it is long."""
    if len(line) <= WIDTH:
        return line
    path, _, query = line.partition('?')
    return f'{path}\n    ?' + query.replace('&', '\n    &')


def _document(value: Any, without: frozenset[str]) -> list[str]:
    text = _wrapped(_omit(value, without), 0, 0)
    return text.replace(json.dumps(_OMITTED), '...').splitlines()


def _omit(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_omit(item, keys) for item in value]
    if isinstance(value, dict):
        return {key: _OMITTED if key in keys else _omit(item, keys) for key, item in value.items()}
    return value


def _wrapped(value: Any, indent: int, before: int) -> str:
    """Return JSON in one line if it fits, otherwise with one item in each line.

    :param before: the number of characters before the value in its first line
    """
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + before < WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    inside = indent + 2
    if isinstance(value, dict):
        pairs = [(f'{json.dumps(key)}: ', item) for key, item in value.items()]
    else:
        pairs = [('', item) for item in value]
    items = (f'{key}{_wrapped(item, inside, inside + len(key))}' for key, item in pairs)
    body = ',\n'.join(' ' * inside + item for item in items)
    return f'{line[0]}\n{body}\n{" " * indent}{line[-1]}'
