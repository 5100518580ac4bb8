"""Stops the applier of a node of a Galera cluster."""

from placement.tests.functional.cluster import gate
from placement.tests.waiting import wait_until


class Gate(gate.Gate):
    """Stops the applier of a node, which then applies no changes of other nodes.

    The applier executes a trigger that waits while a global variable has a value that no server
    uses. The variable has no other effect, because the slow query log is off.
    """

    _HELD = 31536000

    def prepare(self) -> None:
        self.on_other(
            'CREATE TRIGGER gate.stop AFTER INSERT ON gate.changes FOR EACH ROW '
            f'WHILE @@GLOBAL.long_query_time = {self._HELD} DO DO SLEEP(0.002); END WHILE'
        )
        # By default, an applier does not execute triggers.
        self.on_stopped("SET GLOBAL slave_run_triggers_for_rbr = 'ENFORCE'")
        # Another applier would apply later changes, without their COMMIT, and so lock their rows.
        self._threads = self._node.execute('SELECT @@wsrep_slave_threads')[0]
        self.on_stopped('SET GLOBAL wsrep_slave_threads = 1')
        wait_until(self._has_one_applier)

    def _has_one_applier(self) -> bool:
        # A superfluous applier ends after its next change.
        self.on_other()
        return bool(self._node.status('wsrep_applier_thread_count') == '1')

    def hold(self) -> None:
        self.on_stopped(f'SET GLOBAL long_query_time = {self._HELD}')
        self.on_other()

    def release(self) -> None:
        self.on_stopped('SET GLOBAL long_query_time = 10')

    def undo(self) -> None:
        self.on_stopped("SET GLOBAL slave_run_triggers_for_rbr = 'NO'")
        self.on_stopped(f'SET GLOBAL wsrep_slave_threads = {self._threads}')
