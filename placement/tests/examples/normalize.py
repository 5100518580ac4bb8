"""Replaces the parts of a request or a response that differ from run to run.

The replacements are always the same, so a recording changes only if the API changes.
"""

import functools
import json
from pathlib import Path
import re
from typing import Any
import uuid

import os_resource_classes

ORIGIN = 'http://placement.example.com'
DATE = 'Tue, 14 Apr 2026 09:30:00 GMT'
# The message of orjson, which depends on its version.
MALFORMED = 'unexpected end of data: line 1 column 21 (char 20)'
# The list of all resource classes has only these standard classes, because each release of
# os-resource-classes can add a class.
LISTED_CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB')

_NAMESPACE = uuid.UUID('a86ecc8d-a79c-4d4f-9d4f-31d0cd57e7c5')
_UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_REQUEST_ID = re.compile(rf'req-{_UUID.pattern}')
_GENERATED_UUID = re.compile(rf'(?<!req-){_UUID.pattern}')
_MALFORMED = re.compile(r'(?<=Malformed JSON: )[^"\n]+')
_DATE = re.compile(r'[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT')
# A key that is a UUID, a resource class, or a consumer type. The order of such keys is not defined.
_VARIABLE_KEY = re.compile(rf'{_UUID.pattern}|[A-Z0-9_]+|all|unknown|consumer_count')
_CLASSES = {name: number for number, name in enumerate(os_resource_classes.STANDARDS)}

# UUID that the service generated -> UUID in the recordings. An object can occur in several
# recordings of a file.
_recorded_uuids: dict[str, str] = {}


class Normalizer:
    """Replaces the parts of one recording that differ from run to run.

    :param name: the name of the recording
    :param origin: the scheme and the host of the URL of the request
    :param file: the gabbi file; all UUIDs that it contains are the same in each run
    """

    def __init__(self, name: str, origin: str, file: Path) -> None:
        self._name = name
        self._origin = origin
        self._file = file
        self._generated = 0

    def text(self, text: str) -> str:
        """Return a text with constant hosts, dates, messages of orjson, UUIDs, and request IDs."""
        text = text.replace(self._origin, ORIGIN)
        text = _DATE.sub(DATE, text)
        text = _MALFORMED.sub(MALFORMED, text)
        text = _GENERATED_UUID.sub(self._uuid, text)
        return _REQUEST_ID.sub(f'req-{_uuid(self._name)}', text)

    def document(self, text: str) -> Any:
        """Return a JSON document like `text`, with lists and keys in a constant order."""
        return _ordered(json.loads(self.text(text)))

    def _uuid(self, match: re.Match[str]) -> str:
        found = match[0]
        if found in _uuids(self._file):
            return found
        if found not in _recorded_uuids:
            self._generated += 1
            _recorded_uuids[found] = _uuid(f'{self._name}/{self._generated}')
        return _recorded_uuids[found]


def is_shortened(document: Any) -> bool:
    """Whether a normalized document lacks a part of the response."""
    return isinstance(document, dict) and 'resource_classes' in document


@functools.cache
def _uuids(file: Path) -> frozenset[str]:
    return frozenset(_UUID.findall(file.read_text()))


def _uuid(name: str) -> str:
    """Return a UUID of version 4 that depends only on the name."""
    return str(uuid.UUID(bytes=uuid.uuid5(_NAMESPACE, name).bytes, version=4))


def _ordered(value: Any, key: str = '') -> Any:
    """Return a value with its lists and its variable keys in a constant order."""
    if isinstance(value, dict):
        members = {name: _ordered(member, name) for name, member in value.items()}
        if key == 'mappings' or all(map(_VARIABLE_KEY.fullmatch, members)):
            return dict(sorted(members.items(), key=lambda item: _rank(item[0])))
        return members
    if not isinstance(value, list) or key == 'links':
        return value
    items = [_ordered(item) for item in value]
    if key == 'resource_classes':
        items = [item for item in items if _is_listed(item['name'])]
    return sorted(items, key=_item_rank)


def _is_listed(resource_class: str) -> bool:
    return resource_class not in _CLASSES or resource_class in LISTED_CLASSES


def _item_rank(item: Any) -> tuple[int, bool, str]:
    name = item.get('name') if isinstance(item, dict) else item
    return _rank(name if isinstance(name, str) else json.dumps(item))


def _rank(name: str) -> tuple[int, bool, str]:
    """Return the rank of a name: standard resource classes, standard traits, custom names."""
    return _CLASSES.get(name, len(_CLASSES)), name.startswith('CUSTOM_'), name
