"""Stops the applier of a server of a group."""

import threading
from typing import Any


class Gate:
    """Stops the applier of a server, which then commits no changes of other servers.

    The applier waits for the lock of a table in which another server has inserted a row. It commits
    later transactions only after this one.

    :param stopped: the server whose applier stops
    :param other: a server that inserts the rows
    """

    def __init__(self, stopped: Any, other: Any) -> None:
        self._lock = threading.Lock()
        self._stopped, self._other = stopped.connect(), other.connect()
        self._execute(self._other, 'CREATE DATABASE gate')
        self._execute(self._other, 'CREATE TABLE gate.changes (id INT AUTO_INCREMENT PRIMARY KEY)')
        # Wait until the table exists here. The statements that follow must not wait.
        self._set_consistency('BEFORE')
        self._execute(self._stopped, 'SELECT * FROM gate.changes')
        self._set_consistency('EVENTUAL')

    def _set_consistency(self, value: str) -> None:
        self._execute(self._stopped, f"SET SESSION group_replication_consistency = '{value}'")

    def _execute(self, connection: Any, statement: str) -> None:
        with self._lock, connection.cursor() as cursor:
            cursor.execute(statement)

    def hold(self) -> None:
        """Stop the applier until `release` is called."""
        self._execute(self._stopped, 'LOCK TABLES gate.changes READ')
        self._execute(self._other, 'INSERT INTO gate.changes () VALUES ()')

    def release(self) -> None:
        """Let the applier continue."""
        self._execute(self._stopped, 'UNLOCK TABLES')

    def remove(self) -> None:
        """Release the gate, and undo what it has changed."""
        self.release()
        self._execute(self._other, 'DROP DATABASE gate')
        self._stopped.close()
        self._other.close()
