"""A private group of three MySQL servers, of which tests switch the primary, kill and start one."""

from collections.abc import Sequence
import contextlib
from pathlib import Path
import uuid

from tools import nodes, with_database

# Settings of every server. A later argument replaces an earlier one, so these replace the settings
# of `with_database.mysql`, with which a killed server loses transactions.
OPTIONS = (
    '--log-bin=binlog',
    '--sync-binlog=0',
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-doublewrite=ON',
    '--gtid-mode=ON',
    '--enforce-gtid-consistency=ON',
    '--report-host=127.0.0.1',
    '--plugin-load-add=group_replication.so',
    # The server accepts these settings before it has loaded the plugin.
    '--loose-group-replication-start-on-boot=OFF',
    '--loose-group-replication-recovery-get-public-key=ON',
    '--loose-group-replication-ip-allowlist=127.0.0.1/8',
    # The group replaces a killed primary after 5 instead of 10 seconds.
    '--loose-group-replication-member-expel-timeout=0',
)
# The number of servers of a group.
_NODES = 3
_CHANNEL = "FOR CHANNEL 'group_replication_recovery'"
_MEMBERS = 'FROM performance_schema.replication_group_members'


class Node(nodes.Node):
    """A server of a group."""

    def __init__(self, setting: with_database.Setting, options: Sequence[str]) -> None:
        super().__init__(setting, with_database.mysql, options)
        self._has_accounts = False

    def start(self, wait: bool = True, create_group: bool = False) -> None:
        """Start the server, and let it join the group.

        :param wait: wait until the server has the data of the group
        :param create_group: create the group instead
        :raises ServerStartError: the server does not join the group in time
        """
        self._launch(has_accounts=self._has_accounts)
        self.wait_until_listening()
        if not self._has_accounts:
            # Each server creates its accounts by itself, so they are no transactions of the group.
            self.execute('RESET BINARY LOGS AND GTIDS')
            self.execute(
                f'CHANGE REPLICATION SOURCE TO SOURCE_USER = %s, SOURCE_PASSWORD = %s {_CHANNEL}',
                with_database.USER,
                self._setting.password,
            )
            self._has_accounts = True
        self.set_global('group_replication_bootstrap_group', int(create_group))
        self.join()
        self.set_global('group_replication_bootstrap_group', 0)
        if wait:
            self.wait_until_synced()

    def join(self) -> None:
        """Join the group; the server receives the data of the group afterwards."""
        self.execute('START GROUP_REPLICATION')

    def is_synced(self) -> bool:
        """Whether the server is a member of the group and has all data."""
        own = "member_id = @@server_uuid AND member_state = 'ONLINE'"
        return self.rows(f'SELECT COUNT(*) {_MEMBERS} WHERE {own}') == {(1,)}

    def online_members(self) -> int:
        """Return the number of members that are online, as this server knows it."""
        query = f"SELECT COUNT(*) {_MEMBERS} WHERE member_state = 'ONLINE'"
        return int(self.execute(query)[0])

    def become_primary(self, *timeout: int) -> None:
        """Make this server the primary, in a group that has one; return when it is.

        :param timeout: the seconds after which the former primary aborts running transactions; by
            default, it waits for them
        """
        arguments = ', '.join(('@@server_uuid', *map(str, timeout)))
        self.execute(f'SELECT group_replication_set_as_primary({arguments})')

    def become_only_primary(self) -> None:
        """Make this server the primary of a group in which all servers accept writes."""
        self.execute('SELECT group_replication_switch_to_single_primary_mode(@@server_uuid)')

    def let_all_write(self) -> None:
        """Make all servers of the group primaries."""
        self.execute('SELECT group_replication_switch_to_multi_primary_mode()')


def group() -> contextlib.AbstractContextManager[list[Node]]:
    """Run a group of `_NODES` servers while the context is active; the first one is the primary.

    :returns: the servers, all of them online
    :raises ServerStartError: MySQL cannot be had, or a server does not start
    """
    return nodes.started('placement-group-', _prepare, lambda node: node.start(create_group=True))


def _prepare(folder: Path) -> list[Node]:
    """Create the data directories of the servers."""
    ports = nodes.free_ports(2 * _NODES)
    groups = [f'127.0.0.1:{ports.pop()}' for _ in range(_NODES)]
    name = uuid.uuid4()
    prepared = []
    for number, setting in enumerate(nodes.settings(folder, ports, 'nobody'), 1):
        own = (
            f'--server-id={number}',
            f'--report-port={setting.port}',
            f'--loose-group-replication-group-name={name}',
            f'--loose-group-replication-local-address={groups[number - 1]}',
            f'--loose-group-replication-group-seeds={",".join(groups)}',
        )
        prepared.append(Node(setting, (*OPTIONS, *own)))
    return prepared
