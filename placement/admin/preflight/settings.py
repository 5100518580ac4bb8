"""Checks of database servers: access, settings, limits, and the nodes of clusters."""

from collections.abc import Mapping
import os
from pathlib import Path

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import database
from placement.admin.preflight.database import MYSQL, POSTGRESQL, SQLITE, postgresql_settings, shown
from placement.admin.preflight.model import Skipped, Steps, check, failure, warning
from placement.conf.database import connections_of_process
from placement.db import connections
from placement.db.sqlalchemy import models

_GLOBAL = 'GLOBAL VARIABLES'
_SESSION = 'SESSION VARIABLES'
_TRANSACTIONAL = 'InnoDB'
# These character sets store every character of UTF-8, except for those of four bytes in utf8mb3.
_UNICODE = frozenset({'utf8mb4', 'utf8mb3', 'utf8'})
# A proxy between the service and the server can discard the settings of the service.
_PROXY = 'Check the proxy between the service and the server.'

# The limits of the role and of the database; negative if there is none.
_POSTGRESQL_LIMITS = sa.text(
    'SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user UNION ALL'
    ' SELECT datconnlimit FROM pg_database WHERE datname = current_database()'
)


@check('Database Access', MYSQL)
def check_mysql_access(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server is read-only."""
    settings = shown(conn, _GLOBAL)
    for name in ('super_read_only', 'read_only'):
        # Newer versions of MariaDB have further values, such as NO_LOCK.
        if settings.get(name, 'OFF').upper() not in ('OFF', '0'):
            yield failure(
                f'The server is read-only ({name} = {settings[name]}).',
                'Connect to the primary server, or disable the setting.',
            )
            break
    return 'The server accepts writes.'


@check('Database Access', POSTGRESQL)
def check_postgresql_access(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server is read-only or a replica."""
    if conn.scalar(sa.select(sa.func.pg_is_in_recovery())):
        yield failure('The server is a replica.', 'Connect to the primary server.')
    elif postgresql_settings(conn).get('default_transaction_read_only') == 'on':
        yield failure(
            'Transactions are read-only (default_transaction_read_only = on).',
            'Disable the setting for the user or the database of the service.',
        )
    return 'The server accepts writes.'


@check('Database Access', SQLITE)
def check_sqlite_access(config: cfg.ConfigOpts, _conn: sa.Connection) -> Steps:
    """*Failure* if the file or its directory is not writable for the user of the command.

    *Warning* for a database in memory.
    """
    name = database.database_url(config).database
    path = Path(str(name)).absolute()
    if name in (None, '', ':memory:'):
        yield warning(
            'The database is in memory. A process loses all data when it ends.',
            'Set [placement_database] connection to the URL of a file or of a server.',
        )
    elif not os.access(path, os.W_OK):
        yield failure(f'{path} is not writable.', 'Make it writable for the user of the service.')
    elif not os.access(path.parent, os.W_OK):
        yield failure(
            f'The directory of {path} is not writable, so that SQLite cannot create its WAL.',
            'Make the directory writable for the user of the service.',
        )
    return f'{path} and its directory are writable.'


def _tables(conn: sa.Connection) -> list[sa.RowMapping]:
    """Return what MySQL or MariaDB reports about the tables of this release."""
    tables = conn.exec_driver_sql('SHOW TABLE STATUS').mappings()
    return [table for table in tables if table['Name'] in models.metadata.tables]


@check('Character Set', MYSQL)
def check_mysql_characters(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if a collation does not support Unicode, or if those of the tables differ."""
    session = shown(conn, _SESSION)
    # Without tables, the defaults of the database apply to the tables that the service creates.
    of_tables = {row['Collation'] for row in _tables(conn)}
    collations = sorted(of_tables) or [session['collation_database']]
    sets = {name.split('_')[0] for name in collations}
    listed = ', '.join(collations)
    if not sets <= _UNICODE:
        yield warning(
            f'Collations: {listed}. Names with other characters are rejected.',
            'Convert the tables to utf8mb4.',
        )
    if len(collations) > 1:
        yield warning(
            f'The tables have different collations: {listed}. Statements that compare their '
            'columns can fail.',
            'Convert all tables to the same collation.',
        )
    note = '' if 'utf8mb4' in sets else ' Names with four-byte characters are rejected.'
    return f'Character set {session["character_set_database"]}, collation {listed}.{note}'


@check('Character Set', POSTGRESQL)
def check_postgresql_characters(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the encoding is not UTF8."""
    encoding = postgresql_settings(conn)['server_encoding']
    if encoding != 'UTF8':
        yield warning(
            f'The encoding is {encoding}. Names with other characters are rejected.',
            'Move the data to a database with the encoding UTF8.',
        )
    return 'The encoding is UTF8.'


@check('Storage Engine', MYSQL)
def check_storage_engine(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if tables do not use InnoDB.

    If there are no tables, the check applies to ``default_storage_engine``.
    """
    engines = {row['Name']: row['Engine'] for row in _tables(conn)}
    default = shown(conn, _GLOBAL).get('default_storage_engine', '')
    if wrong := sorted(name for name, engine in engines.items() if engine != _TRANSACTIONAL):
        yield failure(
            f'These tables do not use InnoDB: {", ".join(wrong)}. Claims could exceed capacities.',
            'Run ALTER TABLE ... ENGINE = InnoDB for each table.',
        )
    elif not engines and default != _TRANSACTIONAL:
        yield failure(
            f'The default storage engine is {default}.',
            'Set default_storage_engine to InnoDB before you create the tables.',
        )
    return 'The tables use InnoDB.' if engines else 'The default storage engine is InnoDB.'


@check('Binary Log Format', MYSQL)
def check_binary_log(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server writes its binary log with ``binlog_format = STATEMENT``."""
    settings = shown(conn, _GLOBAL)
    name = settings.get('binlog_format', 'ROW').upper()
    if settings.get('log_bin', 'OFF').upper() != 'ON':
        return 'The server writes no binary log.'
    if name == 'STATEMENT':
        yield failure(
            'binlog_format is STATEMENT, which does not permit READ COMMITTED. The service does '
            'not start.',
            'Set binlog_format to ROW or MIXED.',
        )
    return f'binlog_format is {name}.'


@check('Session Settings', MYSQL, as_service=True)
def check_mysql_session(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server or a proxy discards the settings of the service.

    These settings include the isolation level READ COMMITTED and the SQL mode.
    """
    settings = shown(conn, _SESSION)
    isolation = settings.get('transaction_isolation') or settings.get('tx_isolation', 'unknown')
    modes = settings.get('sql_mode', '').upper().split(',')
    if isolation.upper() != 'READ-COMMITTED':
        yield failure(f'The isolation level is {isolation}.', _PROXY)
    if 'STRICT_ALL_TABLES' not in modes:
        yield failure(f'sql_mode is {",".join(modes)}, which is not strict.', _PROXY)
    return f'Isolation level {isolation}, sql_mode {",".join(sorted(modes))}.'


@check('Session Settings', POSTGRESQL, as_service=True)
def check_postgresql_session(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server or a proxy discards the isolation level or the client encoding."""
    settings = postgresql_settings(conn)
    expected = {'default_transaction_isolation': 'read committed', 'client_encoding': 'UTF8'}
    for name, value in expected.items():
        if settings.get(name) != value:
            yield failure(f'{name} is {settings.get(name)} instead of {value}.', _PROXY)
    return 'Isolation level read committed, client encoding UTF8.'


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
    settings = shown(conn, _GLOBAL)
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
    settings = postgresql_settings(conn)
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
    processes, kept = size.machines * size.processes, options.connection_recycle_time
    if idle and not 0 <= kept < idle:
        yield warning(
            f'The server closes idle connections after {idle} seconds ({setting}), and the service '
            f'keeps them for {kept} seconds.',
            f'Set [placement_database] connection_recycle_time to a smaller value than {setting}.',
        )
    threads = '1 thread' if size.threads == 1 else f'{size.threads} threads'
    used = f'A process with {threads} can open {each} connections'
    if processes > 1:
        used = (
            f'{processes} processes (machines: {size.machines}, processes of each: '
            f'{size.processes}, threads of each: {size.threads}) can open {processes * each} '
            f'connections, {each} each'
        )
    if processes * each > accepted:
        yield warning(
            f'{used}, and the server accepts {accepted}.',
            'Increase max_connections of the server and the limit of the user, or decrease '
            'max_pool_size and max_overflow in [placement_database], or the number of processes.',
        )
    return (
        f'The server accepts {accepted} connections. {used}: enough for {accepted // each} '
        'processes.'
    )


@check('Galera Cluster', MYSQL)
def check_galera(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the node is not part of the primary component or not ready.

    *Failure* if ``innodb_autoinc_lock_mode`` is not 2, if ``binlog_format`` is not ``ROW``, or if
    ``[placement_database] mysql_wsrep_sync_wait`` lacks one of the bits 1, 2, and 4; see
    :doc:`../admin/galera`. *Warning* if the node is not synchronized, or if ``wsrep_dirty_reads``
    is ``ON``. *Warning* if the number of members is one or even.
    """
    settings = shown(conn, _GLOBAL)
    if settings.get('wsrep_on', 'OFF').upper() != 'ON':
        raise Skipped('The server is not a node of a Galera cluster.')
    status = shown(conn, "GLOBAL STATUS LIKE 'wsrep%%'")
    yield from _node_state(status)
    for name, value in (('innodb_autoinc_lock_mode', '2'), ('binlog_format', 'ROW')):
        if settings.get(name, value).upper() != value:
            yield failure(
                f'{name} is {settings[name]}, which Galera does not support.',
                f'Set {name} to {value} on every node.',
            )
    waits = config.placement_database.mysql_wsrep_sync_wait
    if waits is not None and not connections.is_sufficient(waits):
        yield failure(
            f'mysql_wsrep_sync_wait is {waits}, so that responses can contain outdated data.',
            'Remove the option [placement_database] mysql_wsrep_sync_wait, or set it to '
            f'{waits | connections.SYNC_WAIT_BITS}.',
        )
    if settings.get('wsrep_dirty_reads', 'OFF').upper() == 'ON':
        yield warning(
            'wsrep_dirty_reads is ON, so that a node outside of the primary component returns '
            'outdated data.',
            'Set wsrep_dirty_reads to OFF.',
        )
    yield from _cluster_size(int(status.get('wsrep_cluster_size', '0')))
    size = status.get('wsrep_cluster_size')
    return f'The node is part of the primary component with {size} members.'


def _node_state(status: Mapping[str, str]) -> Steps:
    component = status.get('wsrep_cluster_status', 'unknown')
    if component.upper() != 'PRIMARY':
        yield failure(
            f'The node is not part of the primary component (wsrep_cluster_status = {component}).',
            'Restore the connection of the node to the cluster.',
        )
    if (ready := status.get('wsrep_ready', 'unknown').upper()) != 'ON':
        yield failure(
            f'The node rejects queries (wsrep_ready = {ready}).',
            'Wait until the node is synchronized, or examine its log.',
        )
    state = status.get('wsrep_local_state_comment', 'unknown')
    if state != 'Synced':
        yield warning(
            f'The node is not synchronized (wsrep_local_state_comment = {state}).',
            'Wait until the node is synchronized.',
        )


def _cluster_size(size: int) -> Steps:
    if size == 1:
        yield warning('The cluster has one member, so that nothing replaces it.', 'Add two nodes.')
    elif size and size % 2 == 0:
        yield warning(
            f'The cluster has {size} members. If its halves lose their connection, neither of them '
            'is the primary component.',
            'Add a node, or an arbitrator (garbd).',
        )


@check('Replication Group', MYSQL)
def check_group(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the group has several primaries.

    *Warning* if ``[placement_database] slave_connection`` is set; see :ref:`group-replication`.
    """
    settings = shown(conn, _GLOBAL)
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
