"""The recorded examples, in the directory `api-ref/examples`. `tools/examples.py` writes them.

Each form of a body has an example, which was recorded in the last microversion of the form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
import functools
from http import HTTPStatus
import json
from pathlib import Path
from typing import Any

import yaml

from api_reference.terms import Operation
from placement.http.reply import STATUS_LINES
from placement.microversion import MIN_VERSION, Version, of_text

FOLDER = Path(__file__).resolve().parents[1] / 'examples'
INDEX = 'index.yaml'
# The names of the examples of errors begin with it. They do not belong to an operation.
ERROR = 'error-'


@functools.cache
def index() -> list[dict[str, Any]]:
    """Return the entries of the index, one for each example."""
    entries: list[dict[str, Any]] = yaml.safe_load((FOLDER / INDEX).read_text(encoding='utf-8'))
    return entries


# Examples for the API reference -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Example:
    """A request and its response, both in the form in which HTTP sends them.

    :ivar version: the microversion of the request; the earliest one if it does not select one
    :ivar document: the parsed body of the request; None if it has none
    :ivar shortened: whether the response was longer
    """

    name: str
    title: str
    operation: str | None
    version: Version
    status: HTTPStatus
    method: str
    url: str
    document: Any
    request: str
    response: str
    shortened: bool


@functools.cache
def read() -> Mapping[str, Example]:
    """Return all examples by name."""
    return {entry['name']: _example(entry) for entry in index()}


def of_operation(anchor: str) -> list[Example]:
    """Return the examples of an operation, the latest microversion first, without errors.

    :param anchor: the anchor of the operation in the API reference
    """
    own = [
        example
        for example in read().values()
        if example.operation == anchor and not example.name.startswith(ERROR)
    ]
    return sorted(own, key=lambda example: example.version, reverse=True)


def ranges(examples: list[Example], since: Version) -> list[tuple[Version, Version]]:
    """Return the microversions to which each example applies: those after the preceding example.

    :param examples: examples of an operation, the latest microversion first
    :param since: the first microversion of the operation
    """
    starts = [Version(1, one.version.minor + 1) for one in examples[1:]] + [since]
    return [(start, one.version) for start, one in zip(starts, examples, strict=False)]


def _example(entry: Mapping[str, Any]) -> Example:
    version = entry['microversion']
    request, response = entry['request'], entry['response']
    is_json = (request['body'] or '').endswith('.json')
    status = HTTPStatus(response['status'])
    return Example(
        name=entry['name'],
        title=entry['title'],
        operation=entry['operation'],
        version=MIN_VERSION if version is None else of_text(version),
        status=status,
        method=request['method'],
        url=request['url'],
        document=json.loads(_read(request['body'])) if is_json else None,
        request=_message(f'{request["method"]} {request["url"]} HTTP/1.1', request),
        response=_message(f'HTTP/1.1 {STATUS_LINES[status]}', response),
        shortened=response.get('shortened', False),
    )


def _message(first_line: str, message: Mapping[str, Any]) -> str:
    lines = [first_line, *(f'{name}: {value}' for name, value in message['headers'].items())]
    if message['body'] is not None:
        lines += ['', _read(message['body']).rstrip('\n')]
    return '\n'.join(lines)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding='utf-8')


# Examples for the OpenAPI documents ---------------------------------------------


def of_request(operation: Operation, version: Version) -> dict[str, Any]:
    """Return the member `examples` of the body of a request.

    The example is the earliest one that was not recorded in an earlier microversion.
    """
    return _member(operation, version, 'request')


def of_response(operation: Operation, version: Version, status: int) -> dict[str, Any]:
    """Return the member `examples` of the body of a response.

    The example is the earliest one that was not recorded in an earlier microversion.
    """
    return _member(operation, version, 'response', status)


def _member(
    operation: Operation, version: Version, part: str, status: int | None = None
) -> dict[str, Any]:
    entry = min(
        (
            one
            for one in _succeeding(operation.anchor)
            if of_text(one['microversion']) >= version
            and one[part]['body'] is not None
            and status in (None, one['response']['status'])
        ),
        key=lambda one: of_text(one['microversion']),
    )
    title = entry['title']
    value = json.loads(_read(entry[part]['body']))
    example = {'summary': f'{title[0].upper()}{title[1:]}', 'value': value}
    return {'examples': {entry['name']: example}}


@functools.cache
def _succeeding(anchor: str) -> list[dict[str, Any]]:
    """Return the entries of the index for requests of an operation that succeeded."""
    return [
        entry
        for entry in index()
        if entry['operation'] == anchor and entry['response']['status'] < HTTPStatus.BAD_REQUEST
    ]
