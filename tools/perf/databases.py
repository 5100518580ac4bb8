"""Create a separate database for each measured world."""

from collections.abc import Callable, Iterator
import contextlib
from pathlib import Path
import signal
import tempfile

import sqlalchemy as sa

from placement.tests import servers
from tools import with_database

ENGINES = ('sqlite', *with_database.ENGINES)

# As in production, the servers write durably and have enough memory for the largest world.
_MARIADB_OPTIONS = (
    '--innodb-flush-log-at-trx-commit=1',
    '--innodb-doublewrite=1',
    '--innodb-buffer-pool-size=4G',
)
_OPTIONS = {
    'mariadb': _MARIADB_OPTIONS,
    'mariadb-mysqlclient': _MARIADB_OPTIONS,
    'mysql': (*_MARIADB_OPTIONS, '--innodb-flush-method=fsync'),
    'postgresql': (
        *('-c', 'fsync=on'),
        *('-c', 'synchronous_commit=on'),
        *('-c', 'full_page_writes=on'),
        *('-c', 'shared_buffers=1GB'),
    ),
}

# A function that creates an empty database with the given name and returns its URL.
CreateDatabase = Callable[[str], str]


@contextlib.contextmanager
def private(engine: str) -> Iterator[CreateDatabase]:
    """Start a database system while the context is active; yield a function to create databases."""
    if engine == 'sqlite':
        with tempfile.TemporaryDirectory(prefix='placement-perf-') as folder:
            yield lambda name: f'sqlite:///{Path(folder, name)}.db'
        return
    # Convert the signal to an exception, so that the context manager stops the server.
    signal.signal(signal.SIGTERM, with_database.exit_on_signal)
    with with_database.server(engine, _OPTIONS[engine]) as url:
        admin = sa.make_url(url)
        yield lambda name: servers.create_database(admin, f'perf_{name}')
