"""Tables for a terminal: aligned, at most 100 columns wide, and without control characters."""

from collections.abc import Collection, Sequence
import textwrap

import prettytable

# In characters.
WIDTH = 100
# Columns are not wrapped to fewer characters.
_NARROWEST = 12
# A border and two blanks for each column, and one more border.
_PER_COLUMN, _BORDER = 3, 1


def table(
    titles: Sequence[str], rows: Sequence[Sequence[object]], numbers: Collection[str] = ()
) -> str:
    """Return a table. The widest columns are wrapped until the table fits.

    :param numbers: the titles of the columns that are aligned to the right
    """
    cells = [[printable(str(value)) for value in row] for row in rows]
    widths = _widths([titles, *cells])
    result = prettytable.PrettyTable(list(titles), align='l')
    for title in numbers:
        result.align[title] = 'r'
    for row in cells:
        result.add_row([_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)])
    return str(result.get_string())


def printable(text: str) -> str:
    r"""Return the text with `\x1b` and similar in place of characters that are not printable.

    A name can contain control sequences of terminals.
    """
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of the columns; the widest ones are reduced until the table fits."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + _PER_COLUMN * len(widths) + _BORDER - WIDTH
    while excess > 0 and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
        excess -= 1
    return widths


def _wrapped(text: str, width: int) -> str:
    return '\n'.join(textwrap.wrap(text, width, break_on_hyphens=False))
