"""Stops the applier of a node of a Galera cluster."""

import threading
from typing import Any

from placement.tests import waiting


class Gate:
    """Stops the applier of a node, which then applies no changes of other nodes.

    The applier executes a trigger that waits while a global variable has a value that no server
    uses. The variable has no other effect, because the slow query log is off.

    :param stopped: the node whose applier stops
    :param other: a node that executes the statement for which the applier stops
    """

    _HELD = 31536000

    def __init__(self, stopped: Any, other: Any) -> None:
        self._lock = threading.Lock()
        self._stopped, self._other = stopped.connect(), other.connect()
        self._execute(self._other, 'CREATE DATABASE gate')
        self._execute(self._other, 'CREATE TABLE gate.changes (id INT AUTO_INCREMENT PRIMARY KEY)')
        self._execute(
            self._other,
            'CREATE TRIGGER gate.stop AFTER INSERT ON gate.changes FOR EACH ROW '
            f'WHILE @@GLOBAL.long_query_time = {self._HELD} DO DO SLEEP(0.002); END WHILE',
        )
        # By default, an applier does not execute triggers.
        self._execute(self._stopped, "SET GLOBAL slave_run_triggers_for_rbr = 'ENFORCE'")
        # Another applier would apply later changes, without their COMMIT, and so lock their rows.
        self._threads = stopped.execute('SELECT @@wsrep_slave_threads')[0]
        self._execute(self._stopped, 'SET GLOBAL wsrep_slave_threads = 1')
        waiting.wait_until(lambda: self._has_one_applier(stopped))

    def _has_one_applier(self, node: Any) -> bool:
        # A superfluous applier ends after its next change.
        self._insert()
        return bool(node.status('wsrep_applier_thread_count') == '1')

    def _insert(self) -> None:
        self._execute(self._other, 'INSERT INTO gate.changes () VALUES ()')

    def _execute(self, connection: Any, statement: str) -> None:
        with self._lock, connection.cursor() as cursor:
            cursor.execute(statement)

    def hold(self) -> None:
        """Stop the applier until `release` is called."""
        self._execute(self._stopped, f'SET GLOBAL long_query_time = {self._HELD}')
        self._insert()

    def release(self) -> None:
        """Let the applier continue."""
        self._execute(self._stopped, 'SET GLOBAL long_query_time = 10')

    def remove(self) -> None:
        """Release the gate, and undo what it has changed."""
        self.release()
        self._execute(self._stopped, "SET GLOBAL slave_run_triggers_for_rbr = 'NO'")
        self._execute(self._stopped, f'SET GLOBAL wsrep_slave_threads = {self._threads}')
        self._execute(self._other, 'DROP DATABASE gate')
        self._stopped.close()
        self._other.close()
