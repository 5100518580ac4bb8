"""The file format: a first line, and then a JSON object for each row of each table.

The fields of a line are the columns of its table, except that the name or the UUID of a row stands
in place of its id. doc/source/admin/export-import.rst describes the format for writers of other
programs.
"""

from collections.abc import Callable, Mapping
import contextlib
from dataclasses import dataclass
import datetime
import functools
import re
from typing import Any

import sqlalchemy as sa

from placement.capacity import MAX_INT
from placement.db.sqlalchemy import models

FORMAT = 'placement-export'
VERSION = 1
# The fields of the first line. `counts` has the number of lines of each kind.
HEADER = ('format', 'version', 'schema_revision', 'counts')
# The field that names the kind of a line.
KIND = 'kind'

# Single precision stores ratios of this magnitude with six significant digits.
LARGEST_RATIO, _SMALLEST_RATIO = 3.40282e38, 1.17549e-38
_TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', re.ASCII)
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


class InvalidValueError(ValueError):
    """A value is not valid; the message completes the sentence 'The field ...'."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of the lines of a kind.

    :ivar column: the column with the value, or with the reference to another row
    :ivar refers_to: the kind whose name or UUID the field contains; None if the field contains the
        value of the column
    :ivar type: the Python type of the value for the database
    :ivar longest: the length of a text in characters; 0 for other types
    """

    name: str
    column: sa.Column[Any]
    refers_to: str | None
    type: type
    longest: int
    nullable: bool

    @property
    def least(self) -> int:
        """The smallest integer that is valid."""
        return int(self.name not in _MAY_BE_0)

    @property
    def is_text_in_database(self) -> bool:
        """Whether a reference is a text in the database, too.

        Only allocations have such a column: `consumer_id` contains the UUID of the consumer.
        """
        return isinstance(self.column.type, sa.String)

    def read(self, value: Any) -> Any:
        """Return the value for the database.

        :param value: the value in the JSON document
        :raises InvalidValueError:
        """
        if value is None and self.nullable:
            return None
        return _READERS[self.type](self, value)

    def write(self, value: Any) -> Any:
        """Return the value for the JSON document.

        :raises InvalidValueError: the value from the database is not valid
        """
        if self.type is float:
            # Six significant digits; MySQL returns no more.
            return 0.0 if abs(value) < _SMALLEST_RATIO else float(f'{value:.6g}')
        if self.type is not datetime.datetime or value is None:
            return value
        if not isinstance(value, datetime.datetime):
            # MySQL has times like 0000-00-00, which its drivers return as text.
            raise InvalidValueError(f'{value} is not a time')
        # Fractions of a second are truncated.
        return f'{value.isoformat(timespec="seconds")}Z'


def _read_text(field: Field, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(f'must be a string{" or null" * field.nullable}')
    if len(value) > field.longest:
        raise InvalidValueError(f'is longer than {field.longest} characters')
    return value


def _read_integer(field: Field, value: Any) -> int:
    if type(value) is not int:
        raise InvalidValueError('must be an integer')
    if not field.least <= value <= MAX_INT:
        raise InvalidValueError(f'must be a number from {field.least} to {MAX_INT}')
    return value


def _read_ratio(_field: Field, value: Any) -> float:
    if type(value) not in (int, float):
        raise InvalidValueError('must be a number')
    if not -LARGEST_RATIO <= value <= LARGEST_RATIO:
        raise InvalidValueError(f'must be a number from {-LARGEST_RATIO} to {LARGEST_RATIO}')
    return float(value)


def _read_time(_field: Field, value: Any) -> datetime.datetime:
    if not isinstance(value, str):
        raise InvalidValueError('must be a string or null')
    return _parse_time(value)


@functools.lru_cache(maxsize=10_000)  # PERF: many rows have the same times.
def _parse_time(text: str) -> datetime.datetime:
    # `fromisoformat` accepts other forms too.
    if _TIME.fullmatch(text):
        with contextlib.suppress(ValueError):
            return datetime.datetime.fromisoformat(text[:-1])
    raise InvalidValueError('must be a time like 2026-11-30T23:59:59Z')


_READERS: Mapping[type, Callable[[Field, Any], Any]] = {
    str: _read_text,
    int: _read_integer,
    float: _read_ratio,
    datetime.datetime: _read_time,
}


# Kinds of lines -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of lines. Each line has the fields of its kind, and no other ones.

    :ivar fields: the fields by name, in the order of the file
    :ivar key: the fields by which lines are sorted and which no two lines have in common; empty for
        providers, which are sorted by their depth in the tree first
    """

    name: str
    table: sa.Table
    fields: Mapping[str, Field]
    key: tuple[str, ...]

    @property
    def label(self) -> str:
        """The kind in messages."""
        return self.name.replace('_', ' ')

    @property
    def text(self) -> sa.Column[Any]:
        """The column with the name or the UUID by which other lines refer to a row."""
        return _text(self.table)


def _text(table: sa.Table) -> sa.Column[Any]:
    return next(column for column in table.c if isinstance(column.type, sa.String))


def _kind(name: str, table: sa.Table, key: tuple[str, ...]) -> Kind:
    """Return a kind: the key, values, references, and times are in this order."""
    columns = [column for column in table.c if column.name not in _NOT_EXPORTED]
    fields = {field.name: field for field in (_field(column, key) for column in columns)}
    references = [name for name, field in fields.items() if field.refers_to]
    values = [name for name in fields if name not in {*references, *TIMES}]
    order = dict.fromkeys((*key, *values, *references, *TIMES))
    return Kind(name, table, {one: fields[one] for one in order}, key)


def _field(column: sa.Column[Any], key: tuple[str, ...]) -> Field:
    name = _NAMES.get(column.name, column.name.removesuffix('_id'))
    refers_to = None
    type_ = column.type
    if name != column.name:
        refers_to = 'provider' if name == 'parent' else name
        type_ = _text(_TABLES[refers_to][0]).type
    # A missing generation is 0.
    nullable = bool(column.nullable) and name not in {*key, 'generation'}
    longest = getattr(type_, 'length', 0)
    return Field(name, column, refers_to, type_.python_type, longest, nullable)


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
KINDS: Mapping[str, Kind] = {
    name: _kind(name, table, key) for name, (table, key) in _TABLES.items()
}
