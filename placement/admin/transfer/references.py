"""Look up the rows that the lines of a file refer to.

A line must refer to an earlier line of the file. Therefore a row counts only if the import has
inserted it, or if it existed before and the file contains it too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement.admin.transfer import model, tables
from placement.admin.transfer.document import InvalidLineError, shown
from placement.db import failures

# The number of ids of each kind that are kept in memory.
_KEPT = 10_000
_BEFORE_THE_FIRST = -1


@dataclass(slots=True)
class Rows:
    """The rows of a kind to which lines can refer.

    :ivar last: the largest id before the import
    :ivar shared: the keys of the existing rows that the file contains too
    :ivar ids: the ids of recently used rows by key
    """

    last: int
    shared: set[str] = field(default_factory=set)
    ids: dict[str, int] = field(default_factory=dict)


Known = Mapping[str, Rows]


def known(conn: sa.Connection) -> Known:
    """Return the rows before the import, by the name of the kind."""
    result = {}
    for name, stored in tables.BY_KIND.items():
        if stored.key is not None:
            last = conn.scalar(sa.select(sa.func.max(stored.table.c.id)))
            result[name] = Rows(_BEFORE_THE_FIRST if last is None else last)
    return result


def resolve(
    conn: sa.Connection, known_rows: Known, kind: model.Kind, lines: Sequence[model.Line]
) -> list[dict[str, Any]]:
    """Return the rows for the database, with ids in place of keys.

    :raises InvalidLineError: a line refers to a row that no earlier line contains
    """
    stored = tables.of(kind)
    rows = [
        {stored.column(name).name: value for name, value in line.values.items()} for line in lines
    ]
    for name, referred in kind.references.items():
        ids = _ids(conn, known_rows[referred], referred, _texts(name, lines))
        column = stored.column(name).name
        for line, row in zip(lines, rows, strict=True):
            text = line.values[name]
            if text is None:
                continue
            if text not in ids:
                label = referred.replace('_', ' ')
                raise InvalidLineError(
                    line.number,
                    f'The {kind.label} refers to the {label} {shown(text)}, which no earlier line '
                    'contains',
                )
            if not tables.is_text(name):
                row[column] = ids[text]
    return rows


def existing(conn: sa.Connection, kind: str, texts: Iterable[str]) -> dict[str, int]:
    """Return the ids of the rows with exactly these keys, whatever the collation of the column."""
    requested = set(texts)
    return {text: id_ for text, id_ in _look_up(conn, kind, sorted(requested)) if text in requested}


def _texts(name: str, lines: Iterable[model.Line]) -> set[str]:
    return {line.values[name] for line in lines if line.values[name] is not None}


def _ids(conn: sa.Connection, rows: Rows, kind: str, texts: Collection[str]) -> Mapping[str, int]:
    missing = [text for text in texts if text not in rows.ids]
    if missing:
        if len(rows.ids) > _KEPT:
            rows.ids.clear()
            missing = list(texts)
        rows.ids.update(
            (text, id_)
            for text, id_ in existing(conn, kind, missing).items()
            if id_ > rows.last or text in rows.shared
        )
    return rows.ids


def _look_up(conn: sa.Connection, kind: str, texts: Sequence[str]) -> list[Any]:
    """Return the stored keys and ids of the rows whose keys equal one of these texts."""
    stored = tables.BY_KIND[kind]
    assert stored.key is not None  # Lines refer to kinds with a key.
    statement = sa.select(stored.key, stored.table.c.id).where(stored.key.in_(texts))
    try:
        # On PostgreSQL, a failed statement ends the transaction, except after a savepoint.
        with conn.begin_nested():
            return list(conn.execute(statement))
    except Exception as error:
        if not failures.is_bad_value(error):
            raise
        # The column cannot contain one of the texts.
        if len(texts) == 1:
            return []
        half = len(texts) // 2
        return _look_up(conn, kind, texts[:half]) + _look_up(conn, kind, texts[half:])
