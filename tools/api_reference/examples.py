"""The recorded examples of the API reference. `tools/examples.py` writes them."""

from collections.abc import Mapping
from dataclasses import dataclass
import functools
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from api_reference.openapi import recorded
from placement.http.reply import STATUS_LINES
from placement.microversion import MAX_VERSION, MIN_VERSION, Version, of_text

# The names of the examples of errors begin with it. They do not belong to an operation.
ERROR = 'error-'


@dataclass(frozen=True, slots=True)
class Example:
    """A request and its response, both in the form in which HTTP sends them.

    :ivar version: the microversion of the request; the earliest one if it does not select one
    :ivar shortened: whether the response was longer
    """

    name: str
    title: str
    operation: str | None
    version: Version
    status: HTTPStatus
    request: str
    response: str
    shortened: bool


@functools.cache
def read(folder: Path = recorded.FOLDER) -> Mapping[str, Example]:
    """Return all examples by name."""
    entries = yaml.safe_load((folder / recorded.INDEX).read_text(encoding='utf-8'))
    return {entry['name']: _example(entry, folder) for entry in entries}


def of_operation(anchor: str, examples: Mapping[str, Example]) -> list[Example]:
    """Return the examples of an operation, the latest microversion first, without errors.

    :param anchor: the anchor of the operation in the API reference
    """
    own = [
        example
        for example in examples.values()
        if example.operation == anchor and not example.name.startswith(ERROR)
    ]
    return sorted(own, key=lambda example: example.version, reverse=True)


def ranges(examples: list[Example]) -> list[tuple[Version, Version]]:
    """Return the microversions to which each example applies: until the next example.

    :param examples: the examples of an operation, the latest microversion first
    """
    starts = sorted({example.version for example in examples})
    ends = [*(start.before() for start in starts[1:]), MAX_VERSION]
    until = dict(zip(starts, ends, strict=True))
    return [(example.version, until[example.version]) for example in examples]


def _example(entry: Mapping[str, Any], folder: Path) -> Example:
    version = entry['microversion']
    request, response = entry['request'], entry['response']
    status = HTTPStatus(response['status'])
    return Example(
        name=entry['name'],
        title=entry['title'],
        operation=entry['operation'],
        version=MIN_VERSION if version is None else of_text(version),
        status=status,
        request=_message(f'{request["method"]} {request["url"]} HTTP/1.1', request, folder),
        response=_message(f'HTTP/1.1 {STATUS_LINES[status]}', response, folder),
        shortened=response.get('shortened', False),
    )


def _message(first_line: str, message: Mapping[str, Any], folder: Path) -> str:
    lines = [first_line, *(f'{name}: {value}' for name, value in message['headers'].items())]
    if message['body'] is not None:
        lines += ['', (folder / message['body']).read_text(encoding='utf-8').rstrip('\n')]
    return '\n'.join(lines)
