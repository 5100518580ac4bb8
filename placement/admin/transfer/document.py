"""Read and check the lines of a file."""

from collections.abc import Collection, Iterator, Mapping
import gzip
import json
from typing import Any, BinaryIO, NamedTuple, NoReturn
import zlib

from placement.admin.failure import CannotProceedError
from placement.admin.transfer import kinds
from placement.admin.transfer.kinds import KINDS, Kind
from placement.db.sqlalchemy import migration

# In bytes. The longest valid line has less than 8 KiB.
LONGEST_LINE = 65_536
_GZIP = b'\x1f\x8b'
# In a message, a value is cut off after this number of characters.
_SHOWN = 80
_ORDER = {name: number for number, name in enumerate(KINDS)}


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
        seen = dict.fromkeys(KINDS, 0)
        current = next(iter(KINDS))
        key: tuple[Any, ...] = ()
        while text := self._next():
            line = self._parse(text)
            name, previous = line.kind.name, key
            if name != current:
                if _ORDER[name] < _ORDER[current]:
                    self._refuse(f'A line of the kind {name} cannot follow one of {current}')
                self._check_counts(seen, _ORDER[name])
                current, previous = name, ()
            seen[name] += 1
            if seen[name] > self.counts[name]:
                self._refuse(f'The first line states only {self._stated(name)}')
            key = tuple(line.values[field] for field in line.kind.key)
            if key and key == previous:
                self._refuse('The line has the same key as the line before')
            if key < previous:
                self._refuse('The line is not in order; the lines are sorted by code point')
            yield line
        self._number += 1
        self._check_counts(seen, len(KINDS))

    def _check_counts(self, seen: Mapping[str, int], number: int) -> None:
        """Check that the file has all lines of the first kinds.

        :param number: the number of these kinds
        """
        for name in list(KINDS)[:number]:
            if seen[name] < self.counts[name]:
                self._refuse(
                    f'The first line states {self._stated(name)}, but the file has {seen[name]}'
                )

    def _stated(self, kind: str) -> str:
        return f'{self.counts[kind]} of the kind {kind}'

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidLineError(self._number, reason)

    def _next(self) -> str:
        """Return the next line with its line break; empty at the end of the file."""
        self._number += 1
        try:
            line = self._file.readline(LONGEST_LINE + 1)
        except EOFError:
            self._refuse('The file is cut off; it ends within compressed data')
        except (gzip.BadGzipFile, zlib.error):
            self._refuse('The file is not compressed with gzip, or the compressed data is damaged')
        if not line:
            self._number -= 1
            return ''
        if len(line) > LONGEST_LINE:
            self._refuse(f'The line is longer than {LONGEST_LINE} bytes')
        if self._number == 1 and line.startswith(_GZIP):
            self._refuse('The file is compressed, but its name does not end in .gz')
        if not line.endswith(b'\n'):
            self._refuse('The file is cut off; the last line has no line break')
        try:
            return line.decode()
        except UnicodeDecodeError:
            self._refuse('The text is not encoded in UTF-8')

    def _read_header(self) -> dict[str, int]:
        text = self._next()
        if not text:
            self._number = 1
            self._refuse('The file is empty')
        header = self._object(text)
        if header.get('format') != kinds.FORMAT:
            self._refuse('The file is not an export of Placement')
        version = header.get('version')
        if type(version) is not int or version != kinds.VERSION:
            self._refuse(
                f'The file has version {shown(version)} of the format, but this release reads '
                f'version {kinds.VERSION}; import the file with a newer release'
            )
        self._check_fields(header, kinds.HEADER)
        revision, counts = header['schema_revision'], header['counts']
        if revision is not None and revision not in migration.revisions():
            self._refuse(
                f'The schema_revision {shown(revision)} is unknown; import the file with a newer '
                'release'
            )
        if not isinstance(counts, dict) or counts.keys() != KINDS.keys():
            self._refuse('The field counts must have a number for each kind of lines')
        if any(type(count) is not int or count < 0 for count in counts.values()):
            self._refuse('The field counts must consist of numbers of lines')
        return counts

    def _parse(self, text: str) -> Line:
        document = self._object(text)
        name = document.pop(kinds.KIND, None)
        kind = KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            self._refuse(f'The kind {shown(name)} is unknown')
        self._check_fields(document, kind.fields)
        for name, field in kind.fields.items():
            try:
                document[name] = field.read(document[name])
            except kinds.InvalidValueError as error:
                self._refuse(f'The field {name} {error}')
        return Line(self._number, kind, document)

    def _check_fields(self, document: Mapping[str, Any], names: Collection[str]) -> None:
        for name in names:
            if name not in document:
                self._refuse(f'The field {name} is missing')
        if len(document) > len(names):
            unknown = next(name for name in document if name not in names)
            self._refuse(f'The field {shown(unknown)} is unknown')

    def _object(self, text: str) -> dict[str, Any]:
        try:
            value = _DECODER.decode(text)
            if '\\u' in text:
                # A document can contain half of a surrogate pair, which is not a character.
                json.dumps(value, ensure_ascii=False).encode()
        except _RepeatedFieldError as error:
            self._refuse(f'The field {shown(str(error))} occurs twice')
        except UnicodeEncodeError:
            self._refuse('A text contains half of a surrogate pair')
        except (ValueError, RecursionError):
            self._refuse('The line is not a JSON document')
        if not isinstance(value, dict):
            self._refuse('The line is not a JSON object')
        return value


class _RepeatedFieldError(ValueError):
    """A JSON object has two fields of the same name."""


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedFieldError(next(name for name in names if names.count(name) > 1))
    return result


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(name)


# JSON has no NaN and no Infinity, but Python reads them by default.
_DECODER = json.JSONDecoder(object_pairs_hook=_object_of, parse_constant=_reject_constant)
