"""The file format: a first line, and then a JSON object for each row of each table.

The fields of a line are the columns of its table, except that the name or the UUID of a row stands
in place of its id. `Document` reads a file, and checks its lines.
doc/source/admin/export-import.rst describes the format for writers of other programs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
import contextlib
from dataclasses import dataclass
import datetime
import functools
import gzip
import json
from typing import Any, BinaryIO, NamedTuple, NoReturn
import zlib

import sqlalchemy as sa

from placement.admin.console import CannotProceedError
from placement.capacity import MAX_INT
from placement.db.sqlalchemy import models

FORMAT = 'placement-export'
VERSION = 1
# The field that names the kind of a line.
KIND = 'kind'

# In bytes. The longest valid line has less than 8 KiB.
LONGEST_LINE = 65_536
_GZIP = b'\x1f\x8b'
# In a message, a value is cut off after this number of characters.
_SHOWN = 80
# Single precision stores ratios of this magnitude with six significant digits.
_LARGEST_RATIO, _SMALLEST_RATIO = 3.40282e38, 1.17549e-38
TIMES = ('created_at', 'updated_at')
# The database assigns the ids; the root of a provider follows from its parents.
_NOT_EXPORTED = {'id', 'root_provider_id'}
# The names of fields that are not the name of the column without `_id`.
_NAMES = {
    'resource_provider_id': 'provider',
    'parent_provider_id': 'parent',
    'external_id': 'external_id',
}
_MAY_BE_0 = {'generation', 'reserved'}
# For each type of a value for the database: the values in a JSON document, for a message, and their
# types.
_JSON_TYPES: Mapping[type, tuple[str, tuple[type, ...]]] = {
    str: ('a string', (str,)),
    int: ('an integer', (int,)),
    float: ('a number', (int, float)),
    datetime.datetime: ('a string', (str,)),
}


class InvalidValueError(ValueError):
    """A value is not valid; the message starts with the name of its field."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of the lines of a kind.

    :ivar column: the column with the value, or with the reference to another row: its id, or for
        the consumer of an allocation, its UUID
    :ivar refers_to: the kind whose name or UUID the field contains; None if the field contains the
        value of the column
    :ivar type: the Python type of the value for the database
    :ivar limits: the smallest and the largest number, or the limits of the length of a text
    """

    name: str
    column: sa.Column[Any]
    refers_to: str | None
    type: type
    limits: tuple[float, float]
    nullable: bool

    def read(self, value: Any) -> Any:
        """Return the value for the database.

        :param value: the value in the JSON document
        :raises InvalidValueError:
        """
        if value is None and self.nullable:
            return None
        what, types = _JSON_TYPES[self.type]
        if type(value) not in types:
            raise InvalidValueError(f'{self.name} must be {what}{" or null" * self.nullable}')
        if self.type is datetime.datetime:
            return self._time(value)
        least, most = self.limits
        if self.type is str and len(value) > most:
            raise InvalidValueError(f'{self.name} is longer than {most} characters')
        if self.type is not str and not least <= value <= most:
            raise InvalidValueError(f'{self.name} must be a number from {least} to {most}')
        return self.type(value)

    def _time(self, text: str) -> datetime.datetime:
        with contextlib.suppress(ValueError):
            return _parse_time(text)
        raise InvalidValueError(f'{self.name} must be a time like 2026-11-30T23:59:59Z')

    def write(self, value: Any) -> Any:
        """Return the value for the JSON document, from which `read` returns the same value.

        :raises InvalidValueError: an import would refuse the value from the database, for example
            a time like 0000-00-00, which the drivers of MySQL return as text
        """
        if isinstance(value, datetime.datetime):
            return _time_text(value)
        if value is None and not self.nullable:
            raise InvalidValueError(
                f'{self.column.name} is NULL, or refers to a row that does not exist'
            )
        value = self.read(value)
        if isinstance(value, float):
            # Six significant digits; MySQL returns no more.
            return 0.0 if abs(value) < _SMALLEST_RATIO else float(f'{value:.6g}')
        return value


@functools.lru_cache(maxsize=10_000)  # PERF: many rows have the same times.
def _parse_time(text: str) -> datetime.datetime:
    time = datetime.datetime.fromisoformat(text[:-1])
    # `fromisoformat` accepts other forms too.
    if _time_text(time.replace(tzinfo=None)) != text:
        raise ValueError(text)
    return time


def _time_text(time: datetime.datetime) -> str:
    """Return a time for the file; fractions of a second are truncated."""
    return f'{time.isoformat(timespec="seconds")}Z'


# Kinds of lines -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of lines. Each line has the fields of its kind, and no other ones.

    :ivar label: the name in messages
    :ivar fields: the fields by name, in the order of the file
    :ivar key: the fields by which lines are sorted and which no two lines have in common; empty for
        providers, which are sorted by their depth in the tree first
    """

    name: str
    label: str
    table: sa.Table
    fields: Mapping[str, Field]
    key: tuple[str, ...]


def text(table: sa.Table) -> sa.Column[Any]:
    """Return the column with the name or the UUID by which other lines refer to a row."""
    return next(column for column in table.c if isinstance(column.type, sa.String))


def _kind(name: str, table: sa.Table, key: tuple[str, ...]) -> Kind:
    """Return a kind: the key, values, references, and times are in this order."""
    columns = [column for column in table.c if column.name not in _NOT_EXPORTED]
    fields = {field.name: field for field in (_field(column, key) for column in columns)}
    references = [name for name, field in fields.items() if field.refers_to]
    values = [name for name in fields if name not in {*references, *TIMES}]
    order = dict.fromkeys((*key, *values, *references, *TIMES))
    ordered = {one: fields[one] for one in order}
    return Kind(name, name.replace('_', ' '), table, ordered, key)


def _field(column: sa.Column[Any], key: tuple[str, ...]) -> Field:
    name = _NAMES.get(column.name, column.name.removesuffix('_id'))
    refers_to = None
    type_ = column.type
    if name != column.name:
        refers_to = 'provider' if name == 'parent' else name
        type_ = text(_TABLES[refers_to][0]).type
    # A missing generation is 0.
    nullable = bool(column.nullable) and name not in {*key, 'generation'}
    limits = {
        str: (0, getattr(type_, 'length', 0)),
        int: (int(name not in _MAY_BE_0), MAX_INT),
        float: (-_LARGEST_RATIO, _LARGEST_RATIO),
    }
    python_type = type_.python_type
    return Field(name, column, refers_to, python_type, limits.get(python_type, (0, 0)), nullable)


# The table and the key of each kind, in the order of the file: each line refers to earlier lines
# only.
_TABLES: Mapping[str, tuple[sa.Table, tuple[str, ...]]] = {
    'resource_class': (models.resource_classes, ('name',)),
    'trait': (models.traits, ('name',)),
    'aggregate': (models.placement_aggregates, ('uuid',)),
    'provider': (models.resource_providers, ()),
    'inventory': (models.inventories, ('provider', 'resource_class')),
    'provider_trait': (models.resource_provider_traits, ('provider', 'trait')),
    'provider_aggregate': (models.resource_provider_aggregates, ('provider', 'aggregate')),
    'consumer_type': (models.consumer_types, ('name',)),
    'project': (models.projects, ('external_id',)),
    'user': (models.users, ('external_id',)),
    'consumer': (models.consumers, ('uuid',)),
    'allocation': (models.allocations, ('consumer', 'provider', 'resource_class')),
}
KINDS: Mapping[str, Kind] = {name: _kind(name, *entry) for name, entry in _TABLES.items()}
_ORDER = {name: number for number, name in enumerate(KINDS)}


# Reading --------------------------------------------------------------------------


class InvalidLineError(CannotProceedError):
    """A line of the file cannot be imported.

    :param number: the number of the line, from 1
    :param reason: a sentence without a period
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f'Line {number}: {reason}. Nothing is imported.')


class Line(NamedTuple):
    """A line of a file: its number, from 1, its kind, and the values for the database by field."""

    number: int
    kind: Kind
    values: Mapping[str, Any]


def shown(value: Any) -> str:
    """Return a value for a message, without control characters."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'


class Document:
    """The lines of a file, which can be read once.

    The constructor reads the first line.

    :param file: the file, opened for reading
    :raises InvalidLineError:
    :ivar counts: the number of lines of each kind
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = 0
        self.counts = self._read_header()

    def lines(self) -> Iterator[Line]:
        """Yield each further line; check the order and the number of the lines of each kind.

        :raises InvalidLineError:
        """
        seen = Counter[str]()
        previous: tuple[Any, ...] = ()
        for document in iter(self._next, None):
            line = self._parse(document)
            seen[line.kind.name] += 1
            place = (_ORDER[line.kind.name], *(line.values[field] for field in line.kind.key))
            if line.kind.key and place == previous:
                self._refuse('The line has the same key as the line before')
            if place < previous:
                self._refuse('The line is not in order; lines are sorted by kind and code point')
            previous = place
            yield line
        for name, stated in self.counts.items():
            if seen[name] != stated:
                self._refuse(
                    f'The first line states {stated} of the kind {name}, but the file has '
                    f'{seen[name]}'
                )

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidLineError(self._number, reason)

    def _next(self) -> dict[str, Any] | None:
        """Return the object of the next line; None at the end of the file."""
        self._number += 1
        try:
            line = self._file.readline(LONGEST_LINE + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self._refuse(
                'The file is not compressed with gzip, or the compressed data is cut off or damaged'
            )
        if not line:
            return None
        if len(line) > LONGEST_LINE:
            self._refuse(f'The line is longer than {LONGEST_LINE} bytes')
        if self._number == 1 and line.startswith(_GZIP):
            self._refuse('The file is compressed, but its name does not end in .gz')
        if not line.endswith(b'\n'):
            self._refuse('The file is cut off; the last line has no line break')
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line.decode())
            if b'\\u' in line:
                # A document can contain half of a surrogate pair, which is not a character.
                json.dumps(value, ensure_ascii=False).encode()
            if isinstance(value, dict):
                return value
        raise InvalidLineError(self._number, 'The line is not a JSON object in UTF-8')

    def _read_header(self) -> dict[str, int]:
        header = self._next() or {}
        if header.get('format') != FORMAT:
            self._refuse('The file is not an export of Placement')
        version = header.get('version')
        if type(version) is not int or version != VERSION:
            self._refuse(
                f'The file has version {shown(version)} of the format, but this release reads '
                f'version {VERSION}; import the file with a newer release'
            )
        counts: Any = header.get('counts')
        is_complete = isinstance(counts, dict) and counts.keys() == KINDS.keys()
        if not is_complete or any(type(count) is not int for count in counts.values()):
            self._refuse('The field counts must have a number for each kind of lines')
        return dict(counts)

    def _parse(self, document: dict[str, Any]) -> Line:
        name = document.pop(KIND, None)
        kind = KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            self._refuse(f'The kind {shown(name)} is unknown')
        values = {}
        for name, field in kind.fields.items():
            if name not in document:
                self._refuse(f'The field {name} is missing')
            try:
                values[name] = field.read(document.pop(name))
            except InvalidValueError as error:
                self._refuse(f'The field {error}')
        if document:
            self._refuse(f'The field {shown(next(iter(document)))} is unknown')
        return Line(self._number, kind, values)
