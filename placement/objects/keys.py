"""Finding rows by the texts that clients use as keys.

On a case-insensitive collation (the default of MySQL and MariaDB) the row that the database finds
may be spelled differently from the key that was asked for, so rows are matched to keys here and
known by id from then on.
"""

from collections.abc import Collection, Iterable
from typing import Any
import unicodedata

import sqlalchemy as sa

from placement import exception


def match(
    conn: sa.Connection, keys: Collection[str], rows: Iterable[Any], column: str
) -> dict[str, Any]:
    """Give each key its row.

    :param keys: the texts that `rows` were selected by
    :param column: the name of the column that holds them
    :returns: the row by key; a key without a row is left out
    """
    found = {getattr(row, column): row for row in rows}
    matched = {key: found[key] for key in keys if key in found}
    if len(matched) == len(keys) or not _ignores_case(conn):
        return matched
    odd_keys = [key for key in keys if key not in matched]
    odd_rows = [row for text, row in found.items() if text not in matched]
    if len(odd_keys) == len(odd_rows) == 1:
        # Whatever the collation's idea of equality is: it must be this one.
        return {**matched, odd_keys[0]: odd_rows[0]}
    folded = {_fold(text): row for text, row in found.items()}
    alike = {key: folded[_fold(key)] for key in odd_keys if _fold(key) in folded}
    return {**matched, **alike}


def one_of_each(conn: sa.Connection, keys: Iterable[str]) -> list[str]:
    """Of keys that the database may take for one record, leave one."""
    if not _ignores_case(conn):
        return sorted(set(keys))
    return sorted({_fold(key): key for key in sorted(keys)}.values())


def require_one_spelling(conn: sa.Connection, keys: Iterable[str]) -> None:
    """Refuse keys that the database may take for one record.

    :raises exception.AmbiguousKeys: naming one of them
    """
    if not _ignores_case(conn):
        return
    seen: set[str] = set()
    for key in keys:
        folded = _fold(key)
        if folded in seen:
            raise exception.AmbiguousKeys(key)
        seen.add(folded)


def _ignores_case(conn: sa.Connection) -> bool:
    return conn.dialect.name == 'mysql'


def _fold(text: str) -> str:
    """A text without letter case, accents and trailing blanks."""
    plain = unicodedata.normalize('NFKD', text)
    bare = ''.join(char for char in plain if not unicodedata.combining(char))
    return bare.casefold().rstrip(' ')
