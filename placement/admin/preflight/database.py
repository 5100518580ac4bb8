"""Connections to the configured database, and the checks that all database systems have in common.

A connection changes nothing: it uses the session settings of the service only on request, it does
not create a file, and it has time limits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import pathlib
from typing import Any

from oslo_config import cfg
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa

from placement import messages
from placement.admin.preflight import encryption, masking
from placement.admin.preflight.model import Verdict, failure, ok, skipped
from placement.conf import database_url as urls
from placement.db import connections, failures

# In seconds. The second limit applies to each read from the network.
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10

TITLES = {'mysql': 'MySQL or MariaDB', 'postgresql': 'PostgreSQL', 'sqlite': 'SQLite'}
# The extras that install a driver, by the beginning of the URL.
_EXTRAS = {
    'mysql+pymysql': 'mysql',
    'mysql': 'mysqlclient',
    'mysql+mysqldb': 'mysqlclient',
    'postgresql+psycopg': 'postgresql',
}

# The arguments of drivers that limit the time of a connection attempt and of a network read.
_LIMITS: Mapping[str, Mapping[str, str]] = {
    'pymysql': {'connect_timeout': str(CONNECT_SECONDS), 'read_timeout': str(STATEMENT_SECONDS)},
    'mysqldb': {'connect_timeout': str(CONNECT_SECONDS), 'read_timeout': str(STATEMENT_SECONDS)},
    'psycopg': {'connect_timeout': str(CONNECT_SECONDS)},
    'psycopg2': {'connect_timeout': str(CONNECT_SECONDS)},
}
_WAL_SUFFIX = '-wal'

# Reads facts with a connection and judges them.
Reader = Callable[[sa.Connection, cfg.ConfigOpts], Sequence[Verdict]]


def database_url(config: cfg.ConfigOpts, option: str = 'connection') -> sa.URL:
    """Return the URL of the database, with the connection parameters.

    :param option: an option of `[placement_database]`
    :raises ValueError: the option has no valid URL; the message does not contain the value
    """
    url = urls.parse(config.placement_database[option])
    if url is None:
        raise ValueError(f'The value of [placement_database] {option} is not a URL.')
    parameters = config.placement_database.connection_parameters
    return url.update_query_string(parameters, append=True) if parameters else url


def location(url: sa.URL) -> str:
    """Return the part of a URL that contains no secret."""
    if url.host is None:
        return str(url.database or 'memory')
    port = f':{url.port}' if url.port else ''
    return f'{url.database or "the default database"} at {url.host}{port}'


def bounded(url: sa.URL) -> sa.URL:
    """Return a URL whose connections have time limits and do not create an SQLite file."""
    if url.get_backend_name() == 'sqlite':
        return _existing_file(url)
    limits = _LIMITS.get(url.get_driver_name(), {})
    return url.update_query_dict({k: v for k, v in limits.items() if k not in url.query})


def _existing_file(url: sa.URL) -> sa.URL:
    if url.database in (None, '', ':memory:') or url.database.startswith('file:'):
        return url
    path = pathlib.Path(url.database).absolute()
    # If the database is in WAL mode, a read-only connection creates the files of the WAL. Without a
    # WAL, no process writes to the database, so that SQLite can treat it as immutable.
    wal = path.with_name(path.name + _WAL_SUFFIX)
    query = {'mode': 'ro', 'uri': 'true'} | ({} if wal.exists() else {'immutable': '1'})
    return url.set(database=path.as_uri().replace('file://', 'file:', 1), query=query)


@contextlib.contextmanager
def connected(
    config: cfg.ConfigOpts, option: str = 'connection', as_service: bool = False
) -> Iterator[sa.Connection]:
    """Yield a connection to the database.

    :param option: the option of `[placement_database]` with the URL
    :param as_service: apply the session settings of the service, except on SQLite, where they can
        change the file
    :raises oslo_db.exception.DBError: the database is not reachable
    """
    options = config.placement_database
    engine = engines.create_engine(
        bounded(database_url(config, option)),
        mysql_sql_mode=options.mysql_sql_mode if as_service else None,
        mysql_wsrep_sync_wait=options.mysql_wsrep_sync_wait if as_service else None,
        # With 0, oslo.db does not connect until the first use.
        max_retries=0,
        thread_checkin=False,
    )
    try:
        if as_service and engine.dialect.name != 'sqlite':
            connections.prepare(engine, options.mysql_wsrep_sync_wait)
            engine = engine.execution_options(isolation_level='READ COMMITTED')
        with engine.connect() as conn:
            yield conn
    finally:
        engine.dispose()


def for_engine(
    readers: Mapping[str, Reader], as_service: bool = False
) -> Callable[[cfg.ConfigOpts], Sequence[Verdict]]:
    """Return a check that uses the reader of the database system.

    :param readers: the functions by the name of the SQLAlchemy dialect
    """

    def check(config: cfg.ConfigOpts) -> Sequence[Verdict]:
        name = database_url(config).get_backend_name()
        if name not in readers:
            return [skipped(f'The check does not apply to {TITLES[name]}.')]
        with connected(config, as_service=as_service) as conn:
            return readers[name](conn, config)

    return check


def variables(conn: sa.Connection, statement: str) -> dict[str, str]:
    """Return the result of a SHOW statement of MySQL or MariaDB; the names are in lower case."""
    rows = conn.exec_driver_sql(statement)
    return {str(row[0]).lower(): str(row[1]) for row in rows}


def check_driver(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the Python driver of the database is installed."""
    return [_driver_of(config, option) for option in _configured(config)]


def _configured(config: cfg.ConfigOpts) -> list[str]:
    names = ('connection', 'slave_connection')
    return [name for name in names if config.placement_database[name]]


def _driver_of(config: cfg.ConfigOpts, option: str) -> Verdict:
    try:
        url = database_url(config, option)
    except ValueError as error:
        return failure(
            str(error),
            'Use the form mysql+pymysql://USER:PASSWORD@HOST/DATABASE, and percent-encode special '
            'characters of the password.',
        )
    if urls.names_no_database(url):
        return failure(
            f'The value of [placement_database] {option} names no database.',
            'Add its name to the end of the URL: mysql+pymysql://USER:PASSWORD@HOST/DATABASE.',
        )
    system = url.get_backend_name()
    if system not in TITLES:
        return failure(
            f'Placement does not support the database system {system}.',
            'Use MySQL, MariaDB, PostgreSQL, or SQLite.',
        )
    return judge_driver(url.drivername, _import_error(url))


def _import_error(url: sa.URL) -> str | None:
    try:
        url.get_dialect().import_dbapi()
    except (sa.exc.NoSuchModuleError, ImportError) as error:
        return ' '.join(str(error).split())
    return None


def judge_driver(name: str, error: str | None) -> Verdict:
    """Judge whether the driver is installed.

    :param name: the database system and its driver, as in the URL
    :param error: the message of the failed import
    """
    if error is None:
        return ok(f'The driver of {name} is installed.')
    extra = _EXTRAS.get(name)
    remedy = 'Correct the driver in the URL, or install it.'
    if extra:
        remedy = f"Run `pip install 'openstack-placement[{extra}]'`."
    return failure(f'The driver of {name} cannot be loaded: {error}', remedy)


def check_connection(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the database accepts a connection."""
    return [_connect(config, 'connection')]


def check_replica(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the replica accepts a connection."""
    if not config.placement_database.slave_connection:
        return [skipped('[placement_database] slave_connection is not set.')]
    return [_connect(config, 'slave_connection')]


def _connect(config: cfg.ConfigOpts, option: str) -> Verdict:
    url = database_url(config, option)
    where = location(url)
    try:
        with connected(config, option) as conn:
            return _judge_connection(url, conn)
    except Exception as error:
        unreadable = urls.unreadable_file(url) if failures.is_unverified(error) else None
        if unreadable:
            return failure(f'{unreadable}.', 'Correct its path or its permissions.')
        message = masking.mask(failures.reason(error), masking.values(config))
        return failure(f'No connection to {where}: {message}', f'{_remedy(error, url)}.')


def _judge_connection(url: sa.URL, conn: sa.Connection) -> Verdict:
    connected_to = f'Connected to {location(url)}: {describe(conn)}'
    if conn.dialect.name == 'sqlite':
        return ok(f'{connected_to}.')
    cipher = _cipher(conn)
    protection = f'encrypted ({cipher})' if cipher else 'not encrypted'
    detail = f'{connected_to}, {protection}.'
    return encryption.judge_database(url, detail, bool(cipher), encryption.verifies(url, conn))


def _remedy(error: Exception, url: sa.URL) -> str:
    correct = 'correct the URL in [placement_database]'
    if isinstance(error, sa.exc.NoSuchModuleError):
        return 'Install the plugin of SQLAlchemy, or remove it from the URL in [placement_database]'
    if isinstance(error, RuntimeError):  # of PyMySQL; see `connections.LOGIN_REMEDY`
        return connections.LOGIN_REMEDY
    if failures.is_access_denied(error):
        return f'Grant the privileges to the user, or {correct}'
    if limit := failures.connection_limit(error):
        return f'Increase {limit}, or decrease the number of connections of all clients'
    if failures.is_unverified(error):
        return f'{messages.certificate_remedy([url])}, or {correct}'
    if failures.is_unknown_database(error):
        return f'Create the database, or {correct}'
    if failures.is_file_inaccessible(error):
        return f'Run `placement-manage db sync`, which creates the file, or {correct}'
    return f'Start the server, or {correct}'


def describe(conn: sa.Connection) -> str:
    """Return the product and the version of a server."""
    # MySQL adds the revision of the package: '9.7.4-2'.
    version = '.'.join(str(part) for part in (conn.dialect.server_version_info or ())[:3])
    name = TITLES[conn.dialect.name]
    if conn.dialect.name == 'mysql':
        name = 'MariaDB' if getattr(conn.dialect, 'is_mariadb', False) else 'MySQL'
    return f'{name} {version}'


def _cipher(conn: sa.Connection) -> str:
    if conn.dialect.name == 'mysql':
        return variables(conn, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").get('ssl_cipher', '')
    statistics = sa.table('pg_stat_ssl', sa.column('pid'), sa.column('cipher'))
    query = sa.select(statistics.c.cipher).where(statistics.c.pid == sa.func.pg_backend_pid())
    cipher: Any = conn.scalar(query)
    return str(cipher or '')
