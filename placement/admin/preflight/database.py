"""Connections to the configured database, and checks of the driver and of these connections.

A connection changes nothing: it uses the session settings of the service only on request, it does
not create a file, and it has time limits.
"""

from collections.abc import Iterator
import contextlib
import ipaddress
from pathlib import Path
import ssl
from typing import Any

from oslo_config import cfg
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa

from placement import messages
from placement.admin.preflight import options
from placement.admin.preflight.model import Skipped, Steps, Verdict, check, failure, ok, warning
from placement.conf import database_url as urls
from placement.db import connections, failures

# The dialects of SQLAlchemy to which a check applies.
MYSQL, POSTGRESQL, SQLITE = ('mysql',), ('postgresql',), ('sqlite',)
SERVERS = MYSQL + POSTGRESQL
ALL = SERVERS + SQLITE
TITLES = {'mysql': 'MySQL or MariaDB', 'postgresql': 'PostgreSQL', 'sqlite': 'SQLite'}

# In seconds: the limits of a connection attempt, and of each response.
_LIMITS = connections.Timeouts(connect=5, read=10)
_WAL_SUFFIX = '-wal'

_LOCAL_NAMES = frozenset({'localhost', 'localhost.localdomain', 'localhost6', 'ip6-localhost'})
_VERIFYING = frozenset({'verify_ca', 'verify_identity', 'verify-ca', 'verify-full'})
# The parameters with which a driver uses TLS and verifies the certificate and its name.
_TLS_PARAMETERS = {
    'pymysql': 'ssl_ca=FILE',
    'mysqldb': 'ssl_mode=VERIFY_IDENTITY&ssl_ca=FILE',
    'psycopg': 'sslmode=verify-full&sslrootcert=FILE',
    'psycopg2': 'sslmode=verify-full&sslrootcert=FILE',
}
_CIPHER = sa.text('SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()')


# Connections ------------------------------------------------------------------


def database_url(config: cfg.ConfigOpts, option: str = 'connection') -> sa.URL:
    """Return the URL of the database, with the connection parameters.

    :param option: an option of `[placement_database]`, whose value is valid
    """
    settings = config.placement_database
    return sa.make_url(urls.with_parameters(settings[option], settings.connection_parameters))


def _without_writes(url: sa.URL) -> sa.URL:
    """Return a URL whose connections do not create an SQLite file."""
    if url.get_backend_name() != 'sqlite' or url.database in (None, '', ':memory:'):
        return url
    if url.database.startswith('file:'):
        return url
    path = Path(url.database).absolute()
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
    :raises Skipped: the block needs a table or a column that does not exist
    """
    settings = config.placement_database
    engine = engines.create_engine(
        _without_writes(database_url(config, option)),
        mysql_sql_mode=settings.mysql_sql_mode if as_service else None,
        mysql_wsrep_sync_wait=settings.mysql_wsrep_sync_wait if as_service else None,
        # With 0, oslo.db does not connect until the first use.
        max_retries=0,
        thread_checkin=False,
    )
    connections.limit_waits(engine, _LIMITS)
    try:
        if as_service and engine.dialect.name != 'sqlite':
            connections.prepare(engine, settings.mysql_wsrep_sync_wait)
            engine = engine.execution_options(isolation_level='READ COMMITTED')
        with engine.connect() as conn:
            yield conn
    except Exception as error:
        if failures.is_old_schema(error):
            raise Skipped(
                'The database lacks a table or a column; see "Schema Revision".'
            ) from error
        raise
    finally:
        engine.dispose()


def shown(conn: sa.Connection, what: str) -> dict[str, str]:
    """Return the result of a SHOW statement of MySQL or MariaDB; the names are in lower case."""
    rows = conn.exec_driver_sql(f'SHOW {what}')
    return {str(row[0]).lower(): str(row[1]) for row in rows}


def postgresql_settings(conn: sa.Connection) -> dict[str, str]:
    """Return the settings of a connection; times are in the unit of the setting."""
    rows = conn.execute(sa.text('SELECT name, setting FROM pg_settings'))
    return {str(name): str(value) for name, value in rows}


# Hosts ------------------------------------------------------------------------


def is_local(host: str | None) -> bool:
    """Return whether a host is the loopback interface or a Unix socket.

    :param host: a name, an address, or a path; None for the default of a driver, which is local
    """
    if not host or host.startswith(('/', '@')) or host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip('[]')).is_loopback
    except ValueError:
        return False


def is_local_database(url: sa.URL) -> bool:
    """Return whether all hosts in the URL of a database are local."""
    arguments = _arguments(url)
    if arguments.get('unix_socket'):
        return True
    # libpq accepts several hosts, and connects to `hostaddr` if it is set.
    hosts = str(arguments.get('hostaddr') or arguments.get('host') or '')
    return all(is_local(host) for host in hosts.split(','))


def _arguments(url: sa.URL) -> dict[str, Any]:
    """Return the arguments of the driver, which the host and the parameters of the URL set."""
    dialect: Any = url.get_dialect()
    return dict(dialect().create_connect_args(url)[1])


# The driver and the connection ------------------------------------------------


@check('Database Driver')
def check_driver(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the URL is not valid or names no database, or the driver cannot be imported.

    The remedy names the extra that installs the driver.
    """
    settings = config.placement_database
    for option in ('connection', 'slave_connection'):
        if settings[option]:
            text = urls.with_parameters(settings[option], settings.connection_parameters)
            yield _driver(text, option)


def _driver(text: str, option: str) -> Verdict:
    try:
        urls.validate(text, option)
    except urls.InvalidUrlError as error:
        problem, _, remedy = str(error).partition('. ')
        return failure(f'{problem}.', remedy)
    url = sa.make_url(text)
    try:
        url.get_dialect().import_dbapi()
    except (sa.exc.NoSuchModuleError, ImportError) as error:
        reason = ' '.join(str(error).split())
        return failure(
            f'The driver of {url.drivername} cannot be loaded: {reason}',
            messages.sentence(error).partition('. ')[2],
        )
    return ok(f'The driver of {url.drivername} is installed.')


@check('Database Connection', needs='Database Driver')
def check_connection(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the database does not accept a connection.

    The details contain the version of the server, and whether the connection is encrypted.
    *Warning* if the connection to another host is not encrypted, or if the driver does not verify
    the certificate of the server; see :doc:`../admin/databases`. Loopback addresses and Unix
    sockets are not another host.
    """
    yield _connection(config, 'connection')


@check('Replica Connection', needs='Database Driver')
def check_replica(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if ``[placement_database] slave_connection`` does not accept a connection.

    *Warning* as for ``Database Connection``.
    """
    if not config.placement_database.slave_connection:
        raise Skipped('[placement_database] slave_connection is not set.')
    yield _connection(config, 'slave_connection')


def _connection(config: cfg.ConfigOpts, option: str) -> Verdict:
    url = database_url(config, option)
    port = f':{url.port}' if url.port else ''
    where = str(url.database or 'memory')
    if url.host is not None:
        where = f'{url.database or "the default database"} at {url.host}{port}'
    try:
        with connected(config, option) as conn:
            connection = f'Connected to {where}: {_product(conn)}'
            if conn.dialect.name == 'sqlite':
                return ok(f'{connection}.')
            return judge_encryption(url, connection, _cipher(conn), _verifies(url, conn))
    except Exception as error:
        unreadable = urls.unreadable_file(url) if failures.is_unverified(error) else None
        if unreadable:
            return failure(f'{unreadable}.', 'Correct its path or its permissions.')
        message = options.masked(failures.reason(error), config)
        return failure(f'No connection to {where}: {message}', f'{_remedy(error, url)}.')


def _product(conn: sa.Connection) -> str:
    """Return the product and the version of a server."""
    # MySQL adds the revision of the package: '9.7.4-2'.
    version = '.'.join(str(part) for part in (conn.dialect.server_version_info or ())[:3])
    name = TITLES[conn.dialect.name]
    if conn.dialect.name == 'mysql':
        name = 'MariaDB' if getattr(conn.dialect, 'is_mariadb', False) else 'MySQL'
    return f'{name} {version}'


def judge_encryption(url: sa.URL, connection: str, cipher: str, is_verified: bool) -> Verdict:
    """Judge the encryption of a connection.

    :param connection: its description
    :param cipher: empty if the connection is not encrypted
    :param is_verified: an encrypted connection has verified the certificate of the server
    """
    protection = f'encrypted ({cipher})' if cipher else 'not encrypted'
    detail = f'{connection}, {protection}.'
    if (cipher and is_verified) or is_local_database(url):
        return ok(detail)
    parameters = _TLS_PARAMETERS.get(url.get_driver_name(), 'the TLS parameters of the driver')
    remedy = (
        f'Add {parameters} to the URL in [placement_database]; see "Databases" in the '
        'administrator guide.'
    )
    if not cipher:
        return warning(
            f'{detail} Others can read and change the data on the network.',
            f'Configure TLS on the server. {remedy}',
        )
    return warning(
        f'{detail} The certificate is not verified, so that another host can replace the server.',
        remedy,
    )


def _cipher(conn: sa.Connection) -> str:
    if conn.dialect.name == 'mysql':
        return shown(conn, "SESSION STATUS LIKE 'Ssl_cipher'").get('ssl_cipher', '')
    return conn.scalar(_CIPHER) or ''


def _verifies(url: sa.URL, conn: sa.Connection) -> bool:
    """Return whether the driver has verified the certificate of an encrypted connection."""
    context = getattr(conn.connection.dbapi_connection, 'ctx', None)
    if isinstance(context, ssl.SSLContext):
        # PyMySQL has several parameters, some of which override others.
        return context.verify_mode is not ssl.CERT_NONE
    arguments = _arguments(url)
    mode = arguments.get('ssl_mode') or arguments.get('sslmode') or ''
    return str(mode).lower() in _VERIFYING


def _remedy(error: Exception, url: sa.URL) -> str:
    if isinstance(error, sa.exc.NoSuchModuleError):
        return 'Install the plugin of SQLAlchemy, or remove it from the URL in [placement_database]'
    if isinstance(error, RuntimeError):  # of PyMySQL; see `connections.LOGIN_REMEDY`
        return connections.LOGIN_REMEDY
    if limit := failures.connection_limit(error):
        return f'Increase {limit}, or decrease the number of connections of all clients'
    actions = (
        (failures.is_access_denied, 'Grant the privileges to the user'),
        (failures.is_unverified, messages.certificate_remedy([url])),
        (failures.is_unknown_database, 'Create the database'),
        (failures.is_file_inaccessible, 'Run `placement-manage db sync`, which creates the file'),
    )
    action = next((text for applies, text in actions if applies(error)), 'Start the server')
    return f'{action}, or correct the URL in [placement_database]'
