"""Checks of the driver, of the connections, and of the settings of the database server.

A connection changes nothing: it uses the session settings of the service only on request, it does
not create a file, and it has time limits.
"""

from collections.abc import Iterator, Mapping
import contextlib
import ipaddress
import os
import ssl
from typing import Any

from oslo_config import cfg
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa

from placement.admin.console import require_file
from placement.admin.preflight.model import Skipped, Steps, Verdict, check, failure, ok, warning
from placement.conf import database_url as urls
from placement.conf.database import connections_of_process
from placement.db import connections, failures, pools
from placement.db.sqlalchemy import models

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
_SESSION = 'SESSION VARIABLES'
# These character sets store every character of UTF-8, except for those of four bytes in utf8mb3.
_UNICODE = frozenset({'utf8mb4', 'utf8mb3', 'utf8'})
# The settings with which a server rejects writes. On PostgreSQL, a replica has the last one.
_READ_ONLY = ('super_read_only', 'read_only', 'transaction_read_only')
# The settings of the service, by the names that versions of the servers have for them.
_OF_SERVICE = {
    'transaction_isolation': 'READ-COMMITTED',
    'tx_isolation': 'READ-COMMITTED',
    'default_transaction_isolation': 'READ-COMMITTED',
    'sql_mode': 'STRICT_ALL_TABLES',
    'client_encoding': 'UTF8',
}
# The settings that a node of a cluster needs, the state in which it works, and the state and the
# setting with which it is up to date.
_NODE = {'innodb_autoinc_lock_mode': '2', 'binlog_format': 'ROW'}
_WORKING = {'wsrep_cluster_status': 'Primary', 'wsrep_ready': 'ON'}
_CURRENT = {'wsrep_local_state_comment': 'Synced', 'wsrep_dirty_reads': 'OFF'}
# The limits of the role and of the database; negative if there is none.
_POSTGRESQL_LIMITS = sa.text(
    'SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user UNION ALL'
    ' SELECT datconnlimit FROM pg_database WHERE datname = current_database()'
)


# Connections ------------------------------------------------------------------


def database_url(config: cfg.ConfigOpts, option: str = 'connection') -> sa.URL:
    """Return the URL of the database, with the connection parameters.

    :param option: an option of `[placement_database]`, whose value is valid
    """
    settings = config.placement_database
    return sa.make_url(urls.with_parameters(settings[option], settings.connection_parameters))


def _without_writes(url: sa.URL) -> sa.URL:
    """Return a URL whose connections do not create an SQLite file."""
    file = urls.file_of(url)
    if file is None:
        return url
    path = file.absolute()
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
    :param as_service: apply the session settings of the service, which can change an SQLite file
    :raises oslo_db.exception.DBError: the database is not reachable
    :raises exception.UnsuitableDatabase: the driver lacks a library for the login
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
    if as_service:
        connections.prepare(engine, settings.mysql_wsrep_sync_wait)
    try:
        with pools.of(engine, pools.Options()).direct.connect() as conn:
            yield conn
    except Exception as error:
        if failures.is_old_schema(error):
            raise Skipped(
                'The database lacks a table or a column; see "Schema Revision".'
            ) from error
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
    settings = config.placement_database
    for option in ('connection', 'slave_connection'):
        if settings[option]:
            urls.validate(
                urls.with_parameters(settings[option], settings.connection_parameters), option
            )
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
    require_file(config.placement_database[option])
    with connected(config, option) as conn:
        connection = f'Connected to {url.set(query={}).render_as_string()}: {_product(conn)}'
        if conn.dialect.name == 'sqlite':
            return ok(f'{connection}.')
        return judge_encryption(url, connection, _cipher(conn), _verifies(url, conn))


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
    detail = f'{connection}, {f"encrypted ({cipher})" if cipher else "not encrypted"}.'
    if (cipher and is_verified) or is_local_database(url):
        return ok(detail)
    parameters = _TLS_PARAMETERS.get(url.get_driver_name(), 'the TLS parameters of the driver')
    return warning(
        f'{detail} The certificate of the server is not verified, so that others on the network '
        'can read and change the data.',
        f'Configure TLS on the server, and add {parameters} to the URL in [placement_database]; '
        'see "Databases" in the administrator guide.',
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


# The server ----------------------------------------------------------------------


def _differing(settings: Mapping[str, str], expected: Mapping[str, str]) -> Iterator[str]:
    """Describe each setting whose value differs, and is no list with the expected value."""
    for name, value in expected.items():
        values = settings.get(name, value).upper().replace(' ', '-').split(',')
        if value.upper() not in values:
            yield f'{name} = {settings[name]} instead of {value}'


@check('Database Access', SERVERS)
def check_access(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server is read-only or a replica."""
    settings = shown(conn)
    for name in _READ_ONLY:
        # Newer versions of MariaDB have further values, such as NO_LOCK.
        if settings.get(name, 'OFF').upper() not in ('OFF', '0'):
            yield failure(
                f'The server is read-only ({name} = {settings[name]}).',
                'Connect to the primary server, or disable the setting.',
            )
            break
    return 'The server accepts writes.'


@check('Database Access', SQLITE)
def check_sqlite_access(config: cfg.ConfigOpts, _conn: sa.Connection) -> Steps:
    """*Failure* if the file or its directory is not writable for the user of the command.

    *Warning* for a database in memory.
    """
    path = urls.file_of(database_url(config))
    if path is None:
        yield warning(
            'The database is in memory. A process loses all data when it ends.',
            'Set [placement_database] connection to the URL of a file or of a server.',
        )
    # SQLite creates its WAL in the directory.
    elif not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        yield failure(
            f'{path} or its directory is not writable.',
            'Make both writable for the user of the service.',
        )
    return f'{path} and its directory are writable.'


def _tables(conn: sa.Connection) -> list[sa.RowMapping]:
    """Return what MySQL or MariaDB reports about the tables of this release."""
    tables = conn.exec_driver_sql('SHOW TABLE STATUS').mappings()
    return [table for table in tables if table['Name'] in models.metadata.tables]


@check('Character Set', MYSQL)
def check_mysql_characters(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if a collation does not support Unicode, or if those of the tables differ."""
    # Without tables, the default of the database applies to the tables that the service creates.
    of_tables = {row['Collation'] for row in _tables(conn)}
    collations = sorted(of_tables) or [shown(conn, _SESSION)['collation_database']]
    sets = {name.split('_')[0] for name in collations}
    listed = ', '.join(collations)
    if not sets <= _UNICODE or len(collations) > 1:
        yield warning(
            f'Collations of the tables: {listed}. Names with other characters are rejected, and '
            'statements that compare columns with different collations can fail.',
            'Convert all tables to the same collation of utf8mb4.',
        )
    note = '' if 'utf8mb4' in sets else ' Names with four-byte characters are rejected.'
    return f'Collation {listed}.{note}'


@check('Character Set', POSTGRESQL)
def check_postgresql_characters(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the encoding is not UTF8."""
    encoding = shown(conn)['server_encoding']
    if encoding != 'UTF8':
        yield warning(
            f'The encoding is {encoding}. Names with other characters are rejected.',
            'Move the data to a database with the encoding UTF8.',
        )
    return 'The encoding is UTF8.'


@check('Storage Engine', MYSQL)
def check_storage_engine(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if tables do not use InnoDB."""
    found = {table['Name']: table['Engine'] for table in _tables(conn)}
    if not found:
        raise Skipped('There are no tables.')
    if wrong := sorted(name for name, engine in found.items() if engine != 'InnoDB'):
        yield failure(
            f'These tables do not use InnoDB: {", ".join(wrong)}. Claims could exceed capacities.',
            'Run ALTER TABLE ... ENGINE = InnoDB for each table.',
        )
    return 'The tables use InnoDB.'


@check('Binary Log Format', MYSQL)
def check_binary_log(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server writes its binary log with ``binlog_format = STATEMENT``."""
    settings = shown(conn)
    written = settings.get('log_bin', 'OFF').upper()
    form = settings.get('binlog_format', 'ROW').upper()
    if (written, form) == ('ON', 'STATEMENT'):
        yield failure(
            'binlog_format is STATEMENT, which does not permit READ COMMITTED. The service does '
            'not start.',
            'Set binlog_format to ROW or MIXED.',
        )
    return f'log_bin is {written}, binlog_format is {form}.'


@check('Session Settings', SERVERS, as_service=True)
def check_session(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server or a proxy discards the settings of the service.

    These settings include the isolation level READ COMMITTED, the SQL mode, and the client
    encoding.
    """
    for problem in _differing(shown(conn, _SESSION), _OF_SERVICE):
        yield failure(f'{problem}.', 'Check the proxy between the service and the server.')
    return 'The connection has the isolation level and the other settings of the service.'


@check('Connection Limits', MYSQL)
def check_mysql_limits(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the server closes idle connections (``wait_timeout``) before the service does.

    The service closes them after ``[placement_database] connection_recycle_time``. *Warning* if the
    server accepts fewer connections than all processes of all machines can open: ``--machines``
    times ``--processes`` times the connections of a process. These are ``max_pool_size`` plus
    ``max_overflow``, at most two for each of ``--threads``, and one connection of ``/healthcheck``.
    The limit of the account counts, too. The details contain the number of processes for which the
    connections are sufficient.
    """
    settings = shown(conn)
    # In the session, this is the limit of the account; 0 means no limit.
    of_user = int(shown(conn, _SESSION).get('max_user_connections', '0'))
    of_server = int(settings['max_connections'])
    accepted = min(of_server, of_user or of_server)
    return (yield from _limits(config, accepted, 'wait_timeout', int(settings['wait_timeout'])))


@check('Connection Limits', POSTGRESQL)
def check_postgresql_limits(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* in the same cases. The setting is ``idle_session_timeout``.

    The limits of the role and of the database count, too.
    """
    settings = shown(conn)
    reserved = ('superuser_reserved_connections', 'reserved_connections')
    accepted = int(settings['max_connections']) - sum(int(settings.get(n, '0')) for n in reserved)
    accepted = min([accepted, *(n for n in conn.scalars(_POSTGRESQL_LIMITS) if n >= 0)])
    # In milliseconds; new in PostgreSQL 14.
    idle = int(settings.get('idle_session_timeout', '0')) // 1000
    return (yield from _limits(config, accepted, 'idle_session_timeout', idle))


def _limits(config: cfg.ConfigOpts, accepted: int, setting: str, idle: int) -> Steps:
    """Compare the limits of a server with the connections of all processes of the service.

    :param accepted: the maximum number of connections, of all clients or of the user
    :param setting: the setting with the time after which the server closes an idle connection
    :param idle: this time in seconds; 0: never
    """
    options, size = config.placement_database, config.command
    # It is not None, because the threads limit the number.
    each = connections_of_process(options, size.threads) or 0
    opened, kept = size.machines * size.processes * each, options.connection_recycle_time
    if idle and not 0 <= kept < idle:
        yield warning(
            f'The server closes idle connections after {idle} seconds ({setting}), and the service '
            f'keeps them for {kept} seconds.',
            f'Set [placement_database] connection_recycle_time to a smaller value than {setting}.',
        )
    used = (
        f'The service can open {opened} connections (machines: {size.machines}, processes of each: '
        f'{size.processes}, threads of each: {size.threads}, connections of each process: {each})'
    )
    if opened > accepted:
        yield warning(
            f'{used}, and the server accepts {accepted}.',
            'Increase max_connections of the server and the limit of the user, or decrease '
            'max_pool_size and max_overflow in [placement_database], or the number of processes.',
        )
    return f'{used}. The server accepts {accepted}: enough for {accepted // each} processes.'


@check('Galera Cluster', MYSQL)
def check_galera(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the node is not part of the primary component or not ready.

    *Failure* if ``innodb_autoinc_lock_mode`` is not 2, if ``binlog_format`` is not ``ROW``, or if
    ``[placement_database] mysql_wsrep_sync_wait`` lacks one of the bits 1, 2, and 4; see
    :doc:`../admin/galera`. *Warning* if the node is not synchronized, or if ``wsrep_dirty_reads``
    is ``ON``. *Warning* if the number of members is one or even.
    """
    settings = shown(conn)
    if settings.get('wsrep_on', 'OFF').upper() != 'ON':
        raise Skipped('The server is not a node of a Galera cluster.')
    settings |= shown(conn, "GLOBAL STATUS LIKE 'wsrep%%'")
    for problem in _differing(settings, _WORKING):
        yield failure(
            f'The node is not part of the primary component, or rejects queries: {problem}.',
            'Restore the connection of the node to the cluster, or examine its log.',
        )
    for problem in _differing(settings, _NODE):
        yield failure(f'Galera does not support {problem}.', 'Correct the setting on every node.')
    waits = config.placement_database.mysql_wsrep_sync_wait
    if waits is not None and not connections.is_sufficient(waits):
        yield failure(
            f'mysql_wsrep_sync_wait is {waits}, so that responses can contain outdated data.',
            'Remove the option [placement_database] mysql_wsrep_sync_wait, or set it to '
            f'{waits | connections.SYNC_WAIT_BITS}.',
        )
    for problem in _differing(settings, _CURRENT):
        yield warning(
            f'The node is behind the cluster, or permits outdated reads: {problem}.',
            'Wait until the node is synchronized, or correct the setting.',
        )
    size = int(settings['wsrep_cluster_size'])
    if size == 1 or size % 2 == 0:
        yield warning(
            f'The number of members is {size}. A single failure, for example of the network, can '
            'stop the cluster.',
            'Use three members or another odd number, for example with an arbitrator (garbd).',
        )
    return f'The node is part of the primary component with {size} members.'


@check('Replication Group', MYSQL)
def check_group(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the group has several primaries.

    *Warning* if ``[placement_database] slave_connection`` is set; see :ref:`group-replication`.
    """
    settings = shown(conn)
    if not settings.get('group_replication_group_name'):
        raise Skipped('The server is not a node of a replication group.')
    if connections.has_several_primaries(settings):
        yield warning(
            'The group has several primaries. Each request waits for the writes of all nodes, and '
            'conflicting writes on two nodes are repeated.',
            'Set group_replication_single_primary_mode to ON, or send all requests of the service '
            'to one node.',
        )
    if config.placement_database.slave_connection:
        yield warning(
            'slave_connection is set, but the service reads only from connection, because a '
            'replica can return outdated data.',
            'Remove the option [placement_database] slave_connection.',
        )
    return 'The node is part of a group with a single primary.'
