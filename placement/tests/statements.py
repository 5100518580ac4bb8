"""Records the SQL statements that this process sends to a database."""

from collections.abc import Iterator
import contextlib
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import event

# Statements of transactions and connections (BEGIN, SET, PRAGMA, SHOW) are not recorded: which of
# them are sent depends on the driver and on the age of the connection.
_RECORDED = frozenset({'SELECT', 'INSERT', 'UPDATE', 'DELETE', 'WITH'})


class Statement(NamedTuple):
    """A statement as it is handed to the database driver."""

    text: str
    parameters: Any

    @property
    def verb(self) -> str:
        """The first word, in upper case."""
        return self.text.lstrip('( \n').split(None, 1)[0].upper()


@contextlib.contextmanager
def recorded(source: sa.Engine | sa.Connection) -> Iterator[list[Statement]]:
    """Record the statements that read or write rows, in the order in which they are sent.

    :param source: an engine, or a connection; other engines for the same database are recorded, too
    """
    engine = source.engine
    # Databases in memory have equal URLs.
    in_memory = isinstance(engine.pool, sa.StaticPool)
    statements: list[Statement] = []

    def record(conn: Any, cursor: Any, text: str, parameters: Any, *_: Any) -> None:
        statement, other = Statement(text, parameters), conn.engine
        is_same = other.pool is engine.pool if in_memory else other.url == engine.url
        if statement.verb in _RECORDED and is_same:
            statements.append(statement)

    event.listen(sa.Engine, 'before_cursor_execute', record)
    try:
        yield statements
    finally:
        event.remove(sa.Engine, 'before_cursor_execute', record)
