"""A private Galera cluster of three MariaDB nodes, which tests stop, kill, suspend and isolate."""

from collections.abc import Sequence
import contextlib
import os
from pathlib import Path
import re
import shutil
import subprocess

from tools import nodes, with_database

PROVIDERS = (
    '/usr/lib/galera/libgalera_smm.so',
    '/usr/lib/galera-4/libgalera_smm.so',
    '/usr/lib64/galera-4/libgalera_smm.so',
)
# Settings of every node; doc/source/admin/databases.rst explains them. A later argument replaces an
# earlier one, so these replace the settings of `with_database.mariadb`, with which a killed server
# loses transactions.
OPTIONS = (
    '--binlog-format=ROW',
    '--innodb-autoinc-lock-mode=2',
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-doublewrite=1',
    '--wsrep-on=ON',
    '--wsrep-cluster-name=placement',
    '--wsrep-slave-threads=4',
    '--wsrep-certify-nonPK=OFF',
    '--wsrep-mode=STRICT_REPLICATION,REQUIRED_PRIMARY_KEY',
    '--wsrep-sst-method=rsync',
)
# The number of nodes of a cluster.
_NODES = 3
# A node outside of the primary component executes this statement, too.
_STATE = 'SHOW GLOBAL STATUS WHERE Variable_name IN ("wsrep_local_state_comment", "wsrep_ready")'
_SYNCED = {('wsrep_local_state_comment', 'Synced'), ('wsrep_ready', 'ON')}
_RECOVERED = re.compile(r'WSREP: Recovered position: *(\S+)')


class Node(nodes.Node):
    """A node of a Galera cluster."""

    def __init__(self, setting: with_database.Setting, options: Sequence[str]) -> None:
        super().__init__(setting, with_database.mariadb, options)

    @property
    def state_file(self) -> Path:
        """The file in which the node stores its position and `safe_to_bootstrap`."""
        return self._setting.folder / 'data' / 'grastate.dat'

    def start(self, *options: str, wait: bool = True) -> None:
        """Start the node.

        :param options: further options, for example ``--wsrep-new-cluster``
        :param wait: wait until the node has the data of the cluster
        :raises ServerStartError: the node does not join the cluster in time
        """
        exists = self.state_file.exists()
        if exists and 'seqno:   -1' in self.state_file.read_text():
            # The node was killed. Like the systemd unit of MariaDB, start from the position that
            # InnoDB has stored, so that the node needs the missing changes only.
            options = (f'--wsrep-start-position={self.recovered_position()}', *options)
        self._launch(*options, has_accounts=exists)
        if wait:
            self.wait_until_synced()

    def recovered_position(self) -> str:
        """Return the position in the history of the cluster that the stopped node has reached."""
        output = subprocess.run(
            [*self._command, '--wsrep-recover', '--disable-log-error'],
            cwd=self._setting.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._setting.identity(),
        ).stdout
        if (position := _RECOVERED.search(output)) is None:
            raise with_database.ServerStartError(f'no position in the output:\n{output}')
        return position[1]

    def is_synced(self) -> bool:
        """Whether the node is part of the primary component and has all data."""
        return self.rows(_STATE) == _SYNCED

    def status(self, name: str) -> str:
        """Return a status variable of the node, which may be outside of the primary component.

        :raises pymysql.err.OperationalError: the node does not respond
        """
        row = self.execute('SHOW GLOBAL STATUS LIKE %s', name)
        return str(row[1]) if row else ''

    def isolate(self, isolated: bool = True) -> None:
        """Make the node ignore all messages of the other nodes, as if its network had failed."""
        self.set_global('wsrep_provider_options', f'gmcast.isolate={int(isolated)}')


def cluster() -> contextlib.AbstractContextManager[list[Node]]:
    """Run a cluster of `_NODES` nodes while the context is active.

    :returns: the nodes, all of them synced
    :raises ServerStartError: a program is not installed, or a node does not start
    """
    create = '--wsrep-new-cluster'
    return nodes.started('placement-galera-', _prepare, lambda node: node.start(create))


def _prepare(folder: Path) -> list[Node]:
    """Create the data directories of the nodes."""
    ports = nodes.free_ports(4 * _NODES)
    groups = [ports.pop() for _ in range(_NODES)]
    members = ','.join(f'127.0.0.1:{port}' for port in groups)
    settings = nodes.settings(folder, [ports.pop() for _ in range(_NODES)], 'mysql')
    prepared = []
    for number, (group, setting) in enumerate(zip(groups, settings, strict=True), 1):
        provider = (
            f'gmcast.listen_addr=tcp://127.0.0.1:{group};base_port={group}',
            f'ist.recv_addr=127.0.0.1:{ports.pop()};gcache.size=64M',
        )
        own = (
            f'--wsrep-provider={provider_library()}',
            f'--wsrep-node-name=node{number}',
            f'--wsrep-cluster-address=gcomm://{members}',
            f'--wsrep-node-address=127.0.0.1:{group}',
            f'--wsrep-sst-receive-address=127.0.0.1:{ports.pop()}',
            f'--wsrep-provider-options={";".join(provider)}',
        )
        prepared.append(Node(setting, (*OPTIONS, *own)))
    return prepared


def provider_library() -> Path:
    """Return the path of the Galera library.

    :raises ServerStartError: it is not installed
    """
    for path in map(Path, PROVIDERS):
        if path.exists():
            return path
    raise with_database.ServerStartError('Galera is not installed (Debian package galera-4)')


def missing_packages() -> list[str]:
    """Return the packages that are not installed, but that the cluster or its tests need."""
    found = {
        'mariadb-server': shutil.which('mariadbd', path='/usr/sbin:/usr/bin:/usr/local/sbin'),
        'galera-4': any(Path(path).exists() for path in PROVIDERS),
        'rsync': shutil.which('rsync'),
        'haproxy': shutil.which('haproxy', path=f'{os.environ.get("PATH", "")}:/usr/sbin'),
    }
    return [name for name, present in found.items() if not present]
