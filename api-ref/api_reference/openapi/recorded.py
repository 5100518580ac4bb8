"""The recorded examples of request bodies and of successful responses.

`python -m tools.examples` records them. Each form of a body has an example, which was recorded in
the first microversion of the form.
"""

import functools
import json
from pathlib import Path
from typing import Any

import yaml

from api_reference.openapi.schemas import Schema
from api_reference.terms import Operation
from placement.microversion import Version, of_text

FOLDER = Path(__file__).resolve().parents[2] / 'examples'
INDEX = 'index.yaml'


def of_request(operation: Operation, version: Version) -> Schema:
    """Return the member `examples` of the body of a request.

    The example is the latest one that was not recorded in a later microversion.
    """
    return _examples(operation, version, 'request')


def of_response(operation: Operation, version: Version, status: int) -> Schema:
    """Return the member `examples` of the body of a response.

    The example is the latest one that was not recorded in a later microversion.
    """
    return _examples(operation, version, 'response', status)


def _examples(
    operation: Operation, version: Version, part: str, status: int | None = None
) -> Schema:
    entry = max(
        (
            one
            for one in _recorded(operation.anchor)
            if of_text(one['microversion']) <= version
            and one[part]['body'] is not None
            and status in (None, one['response']['status'])
        ),
        key=lambda one: of_text(one['microversion']),
    )
    value = json.loads((FOLDER / entry[part]['body']).read_text(encoding='utf-8'))
    return {'examples': {entry['name']: {'summary': _sentence(entry['title']), 'value': value}}}


@functools.cache
def _recorded(operation: str) -> list[dict[str, Any]]:
    """Return the entries of the index for requests of an operation that succeeded."""
    return [one for one in _index() if one['operation'] == operation and _succeeded(one)]


@functools.cache
def _index() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((FOLDER / INDEX).read_text(encoding='utf-8'))
    return entries


def _succeeded(entry: dict[str, Any]) -> bool:
    succeeded: bool = entry['response']['status'] < 400
    return succeeded


def _sentence(title: str) -> str:
    return f'{title[0].upper()}{title[1:]}'
