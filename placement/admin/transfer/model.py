"""The file format: the kinds of lines, their fields, and the values of the fields.

doc/source/admin/export-import.rst describes the format for writers of other programs.
"""

from collections.abc import Mapping
import contextlib
from dataclasses import dataclass
import datetime
import functools
import re
from typing import Any, Protocol

from placement.capacity import MAX_INT

FORMAT = 'placement-export'
VERSION = 1
# The fields of the first line.
HEADER = ('format', 'version', 'schema_revision', 'counts')
# The field that names the kind of a line.
KIND = 'kind'

# Single precision stores ratios of this magnitude with six significant digits.
LARGEST_RATIO, _SMALLEST_RATIO = 3.40282e38, 1.17549e-38
_TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', re.ASCII)


class InvalidValueError(ValueError):
    """A value is not valid; the message completes the sentence 'The field ...'."""


class Type(Protocol):
    """The values of a field."""

    def read(self, value: Any) -> Any:
        """Return the value for the database.

        :param value: the value in the JSON document
        :raises InvalidValueError:
        """
        ...

    def write(self, value: Any) -> Any:
        """Return the value for the JSON document; `value` comes from the database."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text.

    :ivar longest: the length of the column in characters
    :ivar refers_to: the kind whose key the text is; None if the text refers to no other line
    """

    longest: int
    nullable: bool = False
    refers_to: str | None = None

    def read(self, value: Any) -> str | None:
        """Return the text."""
        if value is None and self.nullable:
            return None
        if not isinstance(value, str):
            raise InvalidValueError(f'must be a string{" or null" * self.nullable}')
        if len(value) > self.longest:
            raise InvalidValueError(f'is longer than {self.longest} characters')
        return value

    def write(self, value: Any) -> Any:
        """Return the text unchanged."""
        return value


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer from `least` to 2147483647."""

    least: int

    def read(self, value: Any) -> int:
        """Return the integer."""
        if type(value) is not int:
            raise InvalidValueError('must be an integer')
        if not self.least <= value <= MAX_INT:
            raise InvalidValueError(f'must be a number from {self.least} to {MAX_INT}')
        return value

    def write(self, value: Any) -> Any:
        """Return the integer unchanged."""
        return value


@dataclass(frozen=True, slots=True)
class Ratio:
    """A finite number with six significant digits, which every database system stores alike."""

    def read(self, value: Any) -> float:
        """Return the number."""
        if type(value) not in (int, float):
            raise InvalidValueError('must be a number')
        if not -LARGEST_RATIO <= value <= LARGEST_RATIO:
            raise InvalidValueError(f'must be a number from {-LARGEST_RATIO} to {LARGEST_RATIO}')
        return float(value)

    def write(self, value: Any) -> float:
        """Return the number with six significant digits; MySQL returns no more."""
        return 0.0 if abs(value) < _SMALLEST_RATIO else float(f'{value:.6g}')


@dataclass(frozen=True, slots=True)
class Time:
    """A time in UTC with whole seconds, or null."""

    def read(self, value: Any) -> datetime.datetime | None:
        """Return the time without a time zone, as the database stores it."""
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidValueError('must be a string or null')
        return _parse_time(value)

    def write(self, value: Any) -> str | None:
        """Return the time without fractions of a second, which are truncated."""
        if value is None:
            return None
        if not isinstance(value, datetime.datetime):
            # MySQL has times like 0000-00-00, which its drivers return as text.
            raise InvalidValueError(f'{value} is not a time')
        return f'{value.isoformat(timespec="seconds")}Z'


@functools.lru_cache(maxsize=10_000)  # PERF: many rows have the same times.
def _parse_time(text: str) -> datetime.datetime:
    # In Python 3.11, `fromisoformat` accepts other forms too.
    if _TIME.fullmatch(text):
        with contextlib.suppress(ValueError):
            return datetime.datetime.fromisoformat(text[:-1])
    raise InvalidValueError('must be a time like 2026-11-30T23:59:59Z')


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of lines. Each line has the fields of its kind, and no other ones.

    :ivar name: the value of the field `kind`
    :ivar label: the kind in messages
    :ivar fields: the types of the fields by name, in the order of the file
    :ivar key: the fields by which lines are sorted and which no two lines have in common; empty for
        providers, which are sorted by their depth in the tree first
    """

    name: str
    label: str
    fields: Mapping[str, Type]
    key: tuple[str, ...]

    @property
    def references(self) -> Mapping[str, str]:
        """The kinds that the fields refer to, by field name."""
        return {
            name: type_.refers_to
            for name, type_ in self.fields.items()
            if isinstance(type_, Text) and type_.refers_to is not None
        }


_UUID = Text(36)
_TIMES: Mapping[str, Type] = {'created_at': Time(), 'updated_at': Time()}
_AMOUNT = Integer(least=1)
_PROVIDER = Text(36, refers_to='provider')
_CLASS = Text(255, refers_to='resource_class')


def _named(name: str, field: str, type_: Text) -> Kind:
    label = name.replace('_', ' ')
    return Kind(name, label, {field: type_, **_TIMES}, (field,))


RESOURCE_CLASS = _named('resource_class', 'name', Text(255))
TRAIT = _named('trait', 'name', Text(255))
AGGREGATE = _named('aggregate', 'uuid', _UUID)
PROVIDER = Kind(
    'provider',
    'provider',
    {
        'uuid': _UUID,
        'name': Text(200, nullable=True),
        'generation': Integer(least=0),
        'parent': Text(36, nullable=True, refers_to='provider'),
        **_TIMES,
    },
    (),
)
INVENTORY = Kind(
    'inventory',
    'inventory',
    {
        'provider': _PROVIDER,
        'resource_class': _CLASS,
        'total': _AMOUNT,
        'reserved': Integer(least=0),
        'min_unit': _AMOUNT,
        'max_unit': _AMOUNT,
        'step_size': _AMOUNT,
        'allocation_ratio': Ratio(),
        **_TIMES,
    },
    ('provider', 'resource_class'),
)
PROVIDER_TRAIT = Kind(
    'provider_trait',
    'trait of a provider',
    {'provider': _PROVIDER, 'trait': Text(255, refers_to='trait'), **_TIMES},
    ('provider', 'trait'),
)
PROVIDER_AGGREGATE = Kind(
    'provider_aggregate',
    'aggregate of a provider',
    {'provider': _PROVIDER, 'aggregate': Text(36, refers_to='aggregate'), **_TIMES},
    ('provider', 'aggregate'),
)
CONSUMER_TYPE = _named('consumer_type', 'name', Text(255))
PROJECT = _named('project', 'external_id', Text(255))
USER = _named('user', 'external_id', Text(255))
CONSUMER = Kind(
    'consumer',
    'consumer',
    {
        'uuid': _UUID,
        'generation': Integer(least=0),
        'project': Text(255, refers_to='project'),
        'user': Text(255, refers_to='user'),
        'consumer_type': Text(255, nullable=True, refers_to='consumer_type'),
        **_TIMES,
    },
    ('uuid',),
)
ALLOCATION = Kind(
    'allocation',
    'allocation',
    {
        'consumer': Text(36, refers_to='consumer'),
        'provider': _PROVIDER,
        'resource_class': _CLASS,
        'used': _AMOUNT,
        **_TIMES,
    },
    ('consumer', 'provider', 'resource_class'),
)

# In the order of the file: each line refers to earlier lines only.
KINDS = (
    RESOURCE_CLASS,
    TRAIT,
    AGGREGATE,
    PROVIDER,
    INVENTORY,
    PROVIDER_TRAIT,
    PROVIDER_AGGREGATE,
    CONSUMER_TYPE,
    PROJECT,
    USER,
    CONSUMER,
    ALLOCATION,
)


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file.

    :ivar schema_revision: the schema revision of the exported database; None if it has none
    :ivar counts: the number of lines of each kind, by the name of the kind
    """

    schema_revision: str | None
    counts: Mapping[str, int]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of the line."""
        values = (FORMAT, VERSION, self.schema_revision, dict(self.counts))
        return dict(zip(HEADER, values, strict=True))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file.

    :ivar number: the number of the line, from 1
    :ivar values: the values for the database by field name
    """

    number: int
    kind: Kind
    values: Mapping[str, Any]
