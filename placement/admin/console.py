"""What the commands for operators share: tables, names of UUIDs, progress, and their error.

A text for a terminal is aligned, as wide as the terminal, and without control characters. Placement
stores the UUIDs of aggregates, projects, and servers, but not their names. The names come from
lists that the OpenStack client printed with `-f json`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
import os
from pathlib import Path
import re
import shutil
import sys
import textwrap
from typing import Any

from placement.conf import database_url

# In characters, if standard output is not a terminal.
_WIDTH = 100
# Words of this length are never wrapped.
_SHORT = 20
_UUID_LENGTH = 36
# A UUID; those of projects and users have no hyphens.
UUID = re.compile(r'(?i)(?<![\w-])[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}(?![\w-])')
# Where a cell without blanks, for example a query, gets a blank if it needs several lines.
_BREAK = re.compile(r'(?<=[,&])(?=\S)')

_COLORS = {'red': 31, 'green': 32, 'yellow': 33}

# The columns of the lists that can contain the UUID and the name.
_UUIDS = ('UUID', 'uuid', 'ID', 'Id', 'id')
_NAMES = ('Name', 'name', 'Hypervisor Hostname')
_REMEDY = 'Use `openstack ... list -f json`, for hypervisors with --os-compute-api-version 2.53.'

Row = Sequence[str]


class CannotProceedError(RuntimeError):
    """The command cannot do its work. The message is one sentence for the operator."""


def require_file(connection: str) -> None:
    """Check that the file of an SQLite database exists, because SQLite would create an empty file.

    :param connection: the URL of a database
    :raises CannotProceedError: there is no file
    """
    file = database_url.file_of(connection)
    if file and not file.exists():
        raise CannotProceedError(
            f'The database file {file} does not exist. Run `placement-manage db sync`, or correct '
            '[placement_database] connection.'
        )


# Progress -------------------------------------------------------------------------

# Adds a number of completed items to the progress.
Advance = Callable[[int], object]

# Starts to report the progress of one step of the work. The arguments are what the step does, for
# example 'Reading providers', and the number of its items, if it is known. The value of the context
# manager is the function that the step calls with completed items.
Progress = Callable[..., contextlib.AbstractContextManager[Advance]]


@contextlib.contextmanager
def silent(_label: str, _total: int | None = None) -> Iterator[Advance]:
    """Report nothing."""
    yield lambda _count: None


# Tables ---------------------------------------------------------------------------


def colored(text: str, color: str) -> str:
    """Return a text in a color if standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get('NO_COLOR'):
        return text
    return f'\x1b[{_COLORS[color]}m{text}\x1b[0m'


def width() -> int:
    """Return the number of columns of the terminal, or 100 if standard output is another file."""
    if not sys.stdout.isatty():
        return _WIDTH
    return shutil.get_terminal_size((_WIDTH, 0)).columns


def paragraph(text: str, indent: str = '') -> str:
    """Return a text in lines that are not wider than the terminal. No word is split.

    :param indent: the indentation of the first line; the others have three times as much
    """
    return textwrap.fill(
        printable(text),
        width(),
        initial_indent=indent,
        subsequent_indent=3 * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(
    titles: Row,
    rows: Sequence[Sequence[object]],
    numbers: Collection[str] = (),
    divider: bool = False,
) -> str:
    """Return a table that is not wider than the terminal.

    The widest columns are wrapped. A UUID is never wrapped, and another long word only if the table
    does not fit otherwise. A table that does not fit then has a line for each cell.

    :param numbers: the titles of the columns that are aligned to the right
    :param divider: whether to draw a line below each row
    """
    cells = [[printable(str(value)) for value in row] for row in rows]
    columns = list(zip(titles, *cells, strict=True))
    for padding in (1, 0):
        available = width() - (2 * padding + 1) * len(titles) - 1
        widths = _widths(columns, available)
        if sum(widths) <= available:
            break
    else:
        return _lines(titles, cells)
    result = _new_table(field_names=list(titles), padding_width=padding)
    for title in numbers:
        result.align[title] = 'r'
    for row in cells:
        result.add_row(list(map(_wrapped, row, widths)), divider=divider)
    return str(result.get_string())


def count(number: int, noun: str) -> str:
    """Return a number of things, for example `1 host` or `2,000 hosts`."""
    return f'{number:,} {noun}' if number == 1 else f'{number:,} {noun}s'


def printable(text: str) -> str:
    r"""Return the text with `\x1b` and similar in place of characters that are not printable.

    A name can contain control sequences of terminals.
    """
    return ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _widths(columns: Sequence[Row], available: int) -> list[int]:
    """Return the widths of the columns. The widest ones are reduced until they fit, if possible.

    :param columns: the title and the cells of each column
    """
    widths = [max(map(len, column)) for column in columns]
    for splits in (False, True):
        least = [_least(column, splits) for column in columns]
        while sum(widths) > available and widths != least:
            wrappable = [index for index, most in enumerate(widths) if most > least[index]]
            widths[max(wrappable, key=widths.__getitem__)] -= 1
    return widths


def _least(column: Row, splits: bool) -> int:
    """Return the smallest width of a column.

    :param splits: whether long words are split, except for UUIDs
    """
    words = [word for cell in column[1:] for word in _BREAK.sub(' ', cell).split()]
    whole = [word if not splits or UUID.search(word) else word[:_SHORT] for word in words]
    return max(map(len, [column[0], *whole]))


def _new_table(**options: Any) -> Any:
    # The import takes 30 ms, and most commands print no table.
    import prettytable

    return prettytable.PrettyTable(align='l', **options)


def _wrapped(text: str, most: int) -> str:
    text = text if len(text) <= most else _BREAK.sub(' ', text)
    return textwrap.fill(text, most, break_on_hyphens=False)


def _lines(titles: Row, rows: Sequence[Row]) -> str:
    """Return a table with the title and the value of each cell in a line."""
    result = _new_table(header=False)
    most = max(_UUID_LENGTH, width() - max(map(len, titles)) - 7)
    for row in rows:
        for title, cell in zip(titles, row, strict=True):
            result.add_row([title, _wrapped(cell, most)], divider=title == titles[-1])
    return str(result.get_string())


# Names of UUIDs -------------------------------------------------------------------


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
        return UUID.sub(lambda match: f'{self.of(match[0]) or ""} {match[0]}'.lstrip(), text)

    def in_values(self, value: Any) -> Any:
        """Return a value of strings, lists, dictionaries, and dataclasses with names in all texts.

        The name is not repeated in a dictionary that already has it as a value.
        """
        if not self.names:
            return value
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, dict):
            return {
                key: one
                if isinstance(one, str) and self.of(one) in value.values()
                else self.in_values(one)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(map(self.in_values, value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [one.name for one in dataclasses.fields(value)]
            changes = {name: self.in_values(getattr(value, name)) for name in fields}
            return dataclasses.replace(value, **changes)
        return value


def read_names(paths: Iterable[str]) -> Names:
    """Return the names in files. If a UUID has several names, the last one counts.

    :raises CannotProceedError: a file cannot be read, or is not such a list
    """
    names = {}
    for path in paths:
        for number, (digits, row) in enumerate(rows(path, _REMEDY), 1):
            name = next((row[key] for key in _NAMES if isinstance(row.get(key), str)), None)
            if name is None:
                raise CannotProceedError(f'Row {number} of the file {path} has no name.')
            names[digits] = printable(name)
    return Names(names)


def rows(path: str, remedy: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a file, each with the digits of its UUID (see `digits_of`).

    :param path: a JSON list, as `openstack ... list -f json` prints it
    :param remedy: the sentence with the command that writes such a file
    :raises CannotProceedError: the file cannot be read, or is not such a list
    """
    try:
        listed = json.loads(Path(path).read_text(encoding='utf-8-sig'))
    except OSError as error:
        raise CannotProceedError(f'The file {path} cannot be read: {error.strerror}.') from error
    except (ValueError, RecursionError) as error:
        raise CannotProceedError(f'The file {path} is not valid JSON. {remedy}') from error
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise CannotProceedError(f'The file {path} is not a list of rows. {remedy}')
    for number, row in enumerate(listed, 1):
        uuids = (row.get(key) for key in _UUIDS)
        uuid = next((one for one in uuids if isinstance(one, str) and UUID.fullmatch(one)), None)
        if uuid is None:
            raise CannotProceedError(f'Row {number} of the file {path} has no UUID. {remedy}')
        yield digits_of(uuid), row


def digits_of(uuid: str) -> str:
    """Return the hexadecimal digits of a UUID, which are equal for all its spellings."""
    return uuid.replace('-', '').lower()
