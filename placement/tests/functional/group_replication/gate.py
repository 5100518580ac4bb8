"""Stops the applier of a server of a group."""

from placement.tests.functional.cluster import gate


class Gate(gate.Gate):
    """Stops the applier of a server, which then commits no changes of other servers.

    The applier waits for the lock of a table in which another server has inserted a row. It commits
    later transactions only after this one.
    """

    def prepare(self) -> None:
        # Wait until the table exists here. The statements that follow must not wait.
        for statement in (
            "SET SESSION group_replication_consistency = 'BEFORE'",
            'SELECT * FROM gate.changes',
            "SET SESSION group_replication_consistency = 'EVENTUAL'",
        ):
            self.on_stopped(statement)

    def hold(self) -> None:
        self.on_stopped('LOCK TABLES gate.changes READ')
        self.on_other()

    def release(self) -> None:
        self.on_stopped('UNLOCK TABLES')
