"""Connections to the database, and checks of the driver and of the connections.

A connection changes nothing: it uses the session settings of the service only on request, and has
time limits. The check of the connection requires the file of an SQLite database, because SQLite
would create it.
"""

from collections.abc import Iterator
import contextlib
import ipaddress
import ssl
from typing import Any

from oslo_config import cfg
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa

from placement.admin.console import require_file
from placement.admin.preflight.model import Skipped, Steps, check, ok, warning
from placement.conf import database_url as urls
from placement.db import connections, failures, pools

# The dialects of SQLAlchemy to which a check applies.
MYSQL, SERVERS, ALL = ('mysql',), ('mysql', 'postgresql'), ('mysql', 'postgresql', 'sqlite')
TITLES = {'mysql': 'MySQL or MariaDB', 'postgresql': 'PostgreSQL', 'sqlite': 'SQLite'}

_LOCAL_NAMES = frozenset({'localhost', 'localhost.localdomain', 'localhost6', 'ip6-localhost'})
_VERIFYING = frozenset({'verify_ca', 'verify_identity', 'verify-ca', 'verify-full'})

# Connections ------------------------------------------------------------------


def database_url(config: cfg.ConfigOpts, option: str = 'connection') -> sa.URL:
    """Return the URL of the database, with the connection parameters.

    :param option: an option of `[placement_database]`
    :raises ValueError: its value is not valid, or names no database
    """
    settings = config.placement_database
    url = urls.with_parameters(settings[option], settings.connection_parameters)
    urls.validate(url, option)
    return sa.make_url(url)


@contextlib.contextmanager
def connected(config: cfg.ConfigOpts, as_service: bool = False) -> Iterator[sa.Connection]:
    """Yield a connection to the database.

    :param as_service: apply the session settings of the service, which can change an SQLite file
    :raises oslo_db.exception.DBError: the database is not reachable
    :raises exception.UnsuitableDatabase: the driver lacks a library for the login
    :raises Skipped: the block needs a table or a column that does not exist
    """
    settings = config.placement_database
    names = ('mysql_sql_mode', 'mysql_wsrep_sync_wait')
    options = {name: settings[name] if as_service else None for name in names}
    # With 0 retries, oslo.db does not connect until the first use.
    engine = engines.create_engine(database_url(config), max_retries=0, **options)
    # In seconds: for a connection attempt, and for each response.
    connections.limit_waits(engine, connections.Timeouts(connect=5, read=10))
    if as_service:
        connections.prepare(engine, settings.mysql_wsrep_sync_wait)
    try:
        with pools.of(engine, pools.Options()).direct.connect() as conn:
            yield conn
    except Exception as error:
        if failures.is_old_schema(error):
            raise Skipped('A table or a column is missing; see "Schema Revision".') from error
        raise
    finally:
        engine.dispose()


def shown(conn: sa.Connection, what: str = 'GLOBAL VARIABLES') -> dict[str, str]:
    """Return the settings of a server. The names are in lower case.

    On PostgreSQL, these are the settings of the connection, and times are in the unit of the
    setting.

    :param what: on MySQL and MariaDB, the rest of a SHOW statement
    """
    statement = f'SHOW {what}'
    if conn.dialect.name == 'postgresql':
        statement = 'SELECT name, setting FROM pg_settings'
    return {str(row[0]).lower(): str(row[1]) for row in conn.exec_driver_sql(statement)}


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
    for option in ('connection', 'slave_connection'):
        if config.placement_database[option]:
            url = database_url(config, option)
            url.get_dialect().import_dbapi()
            yield ok(f'The driver of {url.drivername} is installed.')


@check('Database Connection', needs='Database Driver')
def check_connection(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the database does not accept a connection.

    The details contain the version of the server, and whether the connection is encrypted.
    *Warning* if the connection to another host is not encrypted, or if the driver does not verify
    the certificate of the server; see :doc:`../admin/databases`. Loopback addresses and Unix
    sockets are not another host.
    """
    url = database_url(config)
    require_file(config.placement_database.connection)
    with connected(config) as conn:
        connection = f'Connected to {url.set(query={}).render_as_string()}: {_product(conn)}'
        if conn.dialect.name == 'sqlite':
            return f'{connection}.'
        cipher = _cipher(conn)
        detail = f'{connection}, {f"encrypted ({cipher})" if cipher else "not encrypted"}.'
        if (cipher and _verifies(url, conn)) or is_local_database(url):
            return detail
    yield warning(
        f'{detail} The server is not verified, so that others can read and change the data.',
        'Configure TLS on the server and in the URL; see "Databases" in the administrator guide.',
    )
    return ''


def _product(conn: sa.Connection) -> str:
    """Return the product and the version of a server."""
    # MySQL adds the revision of the package: '9.7.4-2'.
    version = '.'.join(str(part) for part in (conn.dialect.server_version_info or ())[:3])
    is_mariadb = getattr(conn.dialect, 'is_mariadb', False)
    name = 'MariaDB' if is_mariadb else TITLES[conn.dialect.name].partition(' ')[0]
    return f'{name} {version}'


def _cipher(conn: sa.Connection) -> str:
    """Return the cipher of a connection, an empty text without encryption."""
    if conn.dialect.name == 'mysql':
        return shown(conn, "SESSION STATUS LIKE 'Ssl_cipher'").get('ssl_cipher', '')
    return conn.scalar(sa.text('SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()')) or ''


def _verifies(url: sa.URL, conn: sa.Connection) -> bool:
    """Return whether the driver has verified the certificate of an encrypted connection."""
    context = getattr(conn.connection.dbapi_connection, 'ctx', None)
    if isinstance(context, ssl.SSLContext):
        # PyMySQL has several parameters, some of which override others.
        return context.verify_mode is not ssl.CERT_NONE
    arguments = _arguments(url)
    mode = arguments.get('ssl_mode') or arguments.get('sslmode') or ''
    return str(mode).lower() in _VERIFYING
