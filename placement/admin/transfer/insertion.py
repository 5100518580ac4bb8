"""Insert rows, and find the line of a row that the database rejects."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.admin.transfer import model, tables
from placement.admin.transfer.document import InvalidLineError, shown
from placement.db import failures


def insert(
    conn: sa.Connection, lines: Sequence[model.Line], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert the rows of lines of one kind.

    :param rows: the row of each line
    :raises InvalidLineError: the database cannot store a row, or the row violates a unique key
    """
    if not lines:
        return
    kind = lines[0].kind
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(tables.of(kind).table), list(rows))
    except Exception as error:
        violates_key = failures.is_key_violation(error)
        if not violates_key and not failures.is_bad_value(error):
            raise
        if len(lines) == 1:
            raise InvalidLineError(lines[0].number, _reason(lines[0], violates_key)) from error
        # The first half fails, or the second half fails after the first half is inserted.
        half = len(lines) // 2
        insert(conn, lines[:half], rows[:half])
        insert(conn, lines[half:], rows[half:])


def _reason(line: model.Line, violates_key: bool) -> str:
    texts = ', '.join(
        f'{name} {shown(line.values[name])}'
        for name, type_ in line.kind.fields.items()
        if isinstance(type_, model.Text) and name not in line.kind.references
    )
    row = f'the {line.kind.label} with {texts}' if texts else f'the {line.kind.label}'
    if violates_key:
        return f'For the database, {row} is equal to an earlier line or to an existing row'
    return f'The database cannot store {row}'
