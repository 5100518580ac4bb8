"""Stops the applier of a node of a cluster."""

import threading
from typing import Any


class Gate:
    """Stops the applier of a node, which then applies no changes of other nodes.

    :param stopped: the node whose applier stops
    :param other: a node that executes the statement for which the applier stops
    """

    def __init__(self, stopped: Any, other: Any) -> None:
        self._lock = threading.Lock()
        self._node = stopped
        self._stopped, self._other = stopped.connect(), other.connect()
        self._execute(self._other, 'CREATE DATABASE gate')
        self._execute(self._other, 'CREATE TABLE gate.changes (id INT AUTO_INCREMENT PRIMARY KEY)')
        self.prepare()

    def _execute(self, connection: Any, statement: str) -> None:
        with self._lock, connection.cursor() as cursor:
            cursor.execute(statement)

    def on_stopped(self, statement: str) -> None:
        """Execute a statement at the node whose applier stops."""
        self._execute(self._stopped, statement)

    def on_other(self, statement: str = 'INSERT INTO gate.changes () VALUES ()') -> None:
        """Execute a statement at the other node."""
        self._execute(self._other, statement)

    def prepare(self) -> None:
        """Prepare the nodes."""

    def hold(self) -> None:
        """Stop the applier until `release` is called."""
        raise NotImplementedError

    def release(self) -> None:
        """Let the applier continue."""
        raise NotImplementedError

    def undo(self) -> None:
        """Undo what `prepare` has changed."""

    def remove(self) -> None:
        """Release the gate, and undo what it has changed."""
        self.release()
        self.undo()
        self.on_other('DROP DATABASE gate')
        self._stopped.close()
        self._other.close()
