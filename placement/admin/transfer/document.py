"""Read and check the lines of a file."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
import gzip
import json
from typing import Any, BinaryIO, NamedTuple, NoReturn
import zlib

from placement.admin.console import CannotProceedError
from placement.admin.transfer import kinds
from placement.admin.transfer.kinds import KINDS, Kind

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
        seen = Counter[str]()
        previous: tuple[Any, ...] = ()
        while text := self._next():
            line = self._parse(text)
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

    def _next(self) -> str:
        """Return the next line with its line break; empty at the end of the file."""
        self._number += 1
        try:
            line = self._file.readline(LONGEST_LINE + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self._refuse(
                'The file is not compressed with gzip, or the compressed data is cut off or damaged'
            )
        if not line:
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
        counts: Any = header.get('counts')
        is_complete = isinstance(counts, dict) and counts.keys() == KINDS.keys()
        if not is_complete or any(type(count) is not int for count in counts.values()):
            self._refuse('The field counts must have a number for each kind of lines')
        return dict(counts)

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
                self._refuse(f'The field {error}')
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
            value = json.loads(text)
            if '\\u' in text:
                # A document can contain half of a surrogate pair, which is not a character.
                json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            self._refuse('A text contains half of a surrogate pair')
        except (ValueError, RecursionError):
            self._refuse('The line is not a JSON document')
        if not isinstance(value, dict):
            self._refuse('The line is not a JSON object')
        return value
