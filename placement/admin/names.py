"""Lists that the OpenStack client printed with `-f json`, and the names of UUIDs in them.

Placement stores the UUIDs of aggregates, projects, and servers, but not their names.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import json
from pathlib import Path
import re
from typing import Any, TypeVar

from placement.admin import tables
from placement.admin.failure import CannotProceedError

T = TypeVar('T')

# The columns of the lists that can contain the UUID and the name.
_UUIDS = ('UUID', 'uuid', 'ID', 'Id', 'id')
_NAMES = ('Name', 'name', 'Hypervisor Hostname')
_REMEDY = 'Use `openstack ... list -f json`, for hypervisors with --os-compute-api-version 2.53.'


@dataclasses.dataclass(frozen=True, slots=True)
class Names:
    """The names of UUIDs.

    :ivar names: the hexadecimal digits of a UUID -> name
    """

    names: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def of(self, uuid: str) -> str | None:
        """Return the name of a UUID; None if it is not known."""
        return self.names.get(digits_of(uuid))

    def in_text(self, text: str) -> str:
        """Return a text with the name before each UUID. Unknown UUIDs stay as they are."""
        return tables.UUID.sub(self._with_name, text) if self.names else text

    def in_values(self, value: T) -> T:
        """Return a value of strings, lists, dictionaries, and dataclasses with names in all texts.

        The name is not repeated in a dictionary that already has it as a value.
        """
        if not self.names:
            return value
        result: T = self._in_values(value)
        return result

    def _with_name(self, match: re.Match[str]) -> str:
        name = self.of(match[0])
        return match[0] if name is None else f'{name} {match[0]}'

    def _in_values(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, dict):
            return {
                key: one
                if isinstance(one, str) and self.of(one) in value.values()
                else self._in_values(one)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(map(self._in_values, value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            changes = {one.name: self._in_values(getattr(value, one.name)) for one in fields}
            return dataclasses.replace(value, **changes)
        return value


def read(paths: Iterable[str]) -> Names:
    """Return the names in files. If a UUID has several names, the last one counts.

    :raises CannotProceedError: a file cannot be read, or is not such a list
    """
    return Names({digits: name for path in paths for digits, name in _names(path)})


def rows(path: str, remedy: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a file, each with the digits of its UUID (see `digits_of`).

    :param path: a JSON list, as `openstack ... list -f json` prints it
    :param remedy: the sentence with the command that writes such a file
    :raises CannotProceedError: the file cannot be read, or is not such a list
    """
    try:
        listed = json.loads(Path(path).read_text(encoding='utf-8-sig'))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotProceedError(f'The file {path} cannot be read: {reason}.') from error
    except (ValueError, RecursionError) as error:
        raise CannotProceedError(f'The file {path} is not valid JSON. {remedy}') from error
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise CannotProceedError(f'The file {path} is not a list of rows. {remedy}')
    for number, row in enumerate(listed, 1):
        uuid = next((row[key] for key in _UUIDS if _is_uuid(row.get(key))), None)
        if uuid is None:
            raise CannotProceedError(f'Row {number} of the file {path} has no UUID. {remedy}')
        yield digits_of(uuid), row


def digits_of(uuid: str) -> str:
    """Return the hexadecimal digits of a UUID, which are equal for all its spellings."""
    return uuid.replace('-', '').lower()


def _names(path: str) -> Iterator[tuple[str, str]]:
    for number, (digits, row) in enumerate(rows(path, _REMEDY), 1):
        name = next((row[key] for key in _NAMES if isinstance(row.get(key), str)), None)
        if name is None:
            raise CannotProceedError(f'Row {number} of the file {path} has no name.')
        yield digits, tables.printable(name)


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and tables.UUID.fullmatch(value) is not None
