"""Read and check the lines of a file, without access to the database."""

from collections.abc import Iterator, Mapping
import gzip
import json
from typing import Any, BinaryIO, NoReturn
import zlib

from placement.admin.failure import CannotProceedError
from placement.admin.transfer import model

# In bytes. The longest valid line has less than 8 KiB.
LONGEST_LINE = 65_536
_GZIP = b'\x1f\x8b'
_KINDS = {kind.name: kind for kind in model.KINDS}
_POSITIONS = {kind.name: position for position, kind in enumerate(model.KINDS)}
# In a message, a value is cut off after this number of characters.
_SHOWN = 80


class InvalidLineError(CannotProceedError):
    """A line of the file cannot be imported.

    :param number: the number of the line, from 1
    :param reason: a sentence without a period
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f'Line {number}: {reason}. Nothing is imported.')
        self.number = number


def shown(value: Any) -> str:
    """Return a value for a message, without control characters."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'


class Document:
    """The lines of a file, which can be read once.

    The constructor reads the first line.

    :param file: the file, opened for reading
    :raises InvalidLineError:
    :ivar header: the first line
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = 0
        self.header = self._read_header()

    def lines(self) -> Iterator[model.Line]:
        """Yield each further line; at the end, check that no line is missing.

        :raises InvalidLineError:
        """
        order = _Order(self.header)
        while text := self._next():
            line = self._parse(text)
            if problem := order.problem(line):
                self._refuse(problem)
            yield line
        self._number += 1
        if problem := order.problem_at_end():
            self._refuse(problem)

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

    def _read_header(self) -> model.Header:
        text = self._next()
        if not text:
            self._number = 1
            self._refuse('The file is empty')
        document = self._object(text)
        if document.get('format') != model.FORMAT:
            self._refuse('The file is not an export of Placement')
        version = document.get('version')
        if type(version) is not int or version < 1:
            self._refuse('The version of the format is not valid')
        if version > model.VERSION:
            self._refuse(
                f'The file has version {version} of the format, but this release reads up to '
                f'version {model.VERSION}; import the file with a newer release'
            )
        self._check_fields(document, model.HEADER)
        revision, counts = document['schema_revision'], document['counts']
        if revision is not None and not isinstance(revision, str):
            self._refuse('The field schema_revision must be a string or null')
        if not isinstance(counts, dict) or counts.keys() != _KINDS.keys():
            self._refuse('The field counts must have a number for each kind of lines')
        if not all(type(count) is int and count >= 0 for count in counts.values()):
            self._refuse('The field counts must consist of numbers of lines')
        return model.Header(revision, counts)

    def _check_fields(self, document: Mapping[str, Any], names: Iterator[str] | Any) -> None:
        for name in names:
            if name not in document:
                self._refuse(f'The field {name} is missing')
        for name in document:
            if name not in names:
                self._refuse(f'The field {shown(name)} is unknown')

    def _parse(self, text: str) -> model.Line:
        document = self._object(text)
        name = document.pop(model.KIND, None)
        kind = _KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            self._refuse(f'The kind {shown(name)} is unknown')
        if document.keys() != kind.fields.keys():
            self._check_fields(document, kind.fields)
        for field, type_ in kind.fields.items():
            try:
                document[field] = type_.read(document[field])
            except model.InvalidValueError as error:
                self._refuse(f'The field {field} {error}')
        return model.Line(self._number, kind, document)


class _Order:
    """Checks the order of lines, and counts them.

    :param header: the first line of the file
    """

    def __init__(self, header: model.Header) -> None:
        self._counts = header.counts
        self._kind = model.KINDS[0]
        self._seen = 0
        self._key: tuple[Any, ...] = ()

    def problem(self, line: model.Line) -> str | None:
        """Return what is wrong with the position of the next line; None if it is correct."""
        if line.kind is not self._kind and (problem := self._change(line.kind)):
            return problem
        self._seen += 1
        if self._seen > self._counts[line.kind.name]:
            return f'The first line states only {self._count()}'
        if not line.kind.key:
            return None
        key = tuple(line.values[name] for name in line.kind.key)
        if key == self._key:
            return 'The line has the same key as the line before'
        if key < self._key:
            return 'The line is not in order; the lines of a kind are sorted by code point'
        self._key = key
        return None

    def problem_at_end(self) -> str | None:
        """Return what is missing at the end of the file; None if the file is complete."""
        return self._missing(len(model.KINDS))

    def _change(self, kind: model.Kind) -> str | None:
        position = _POSITIONS[kind.name]
        if position < _POSITIONS[self._kind.name]:
            return f'A line of the kind {kind.name} cannot follow one of {self._kind.name}'
        if problem := self._missing(position):
            return problem
        self._kind, self._seen, self._key = kind, 0, ()
        return None

    def _missing(self, position: int) -> str | None:
        """Return which of the lines before this kind are missing."""
        if self._seen < self._counts[self._kind.name]:
            return f'The first line states {self._count()}, but the file has {self._seen}'
        for kind in model.KINDS[_POSITIONS[self._kind.name] + 1 : position]:
            if self._counts[kind.name]:
                number = self._counts[kind.name]
                return f'The first line states {number} of the kind {kind.name}, but the file has 0'
        return None

    def _count(self) -> str:
        return f'{self._counts[self._kind.name]} of the kind {self._kind.name}'


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
