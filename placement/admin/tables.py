"""Tables for a terminal: aligned, as wide as the terminal, and without control characters."""

from collections.abc import Collection, Sequence
import os
import re
import shutil
import sys
import textwrap

import prettytable

# In characters, if standard output is not a terminal.
_WIDTH = 100
# Words of this length are never wrapped.
_SHORT = 20
_UUID_LENGTH = 36
# A UUID; those of projects and users have no hyphens.
UUID = re.compile(
    r'(?<![\w-])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})(?![\w-])',
    re.IGNORECASE,
)
# Where a cell without blanks, for example a query, gets a blank if it needs several lines.
_BREAK = re.compile(r'(?<=[,&])(?=\S)')

_COLORS = {'red': 31, 'green': 32, 'yellow': 33}

Row = Sequence[str]


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
    lines = textwrap.wrap(
        printable(text),
        width(),
        initial_indent=indent,
        subsequent_indent=3 * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return '\n'.join(lines)


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
    result = prettytable.PrettyTable(list(titles), align='l', padding_width=padding)
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
    if text.isprintable():
        return text
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


def _wrapped(text: str, most: int) -> str:
    text = text if len(text) <= most else _BREAK.sub(' ', text)
    return '\n'.join(textwrap.wrap(text, most, break_on_hyphens=False))


def _lines(titles: Row, rows: Sequence[Row]) -> str:
    """Return a table with the title and the value of each cell in a line."""
    result = prettytable.PrettyTable(header=False, align='l')
    most = max(_UUID_LENGTH, width() - max(map(len, titles)) - 7)
    for row in rows:
        for title, cell in zip(titles, row, strict=True):
            result.add_row([title, _wrapped(cell, most)], divider=title == titles[-1])
    return str(result.get_string())
