"""Checks of database servers: access, settings, limits, and the nodes of clusters."""

from collections.abc import Iterator, Mapping
import os
from pathlib import Path

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight.database import ALL, MYSQL, SERVERS, database_url, shown
from placement.admin.preflight.model import Skipped, Steps, check, failure, warning
from placement.conf import database_url as urls
from placement.conf.database import connections_of_process
from placement.db import connections
from placement.db.sqlalchemy import models

_SESSION = 'SESSION VARIABLES'
# The character sets that store every character; the others lack those of four bytes in UTF-8.
_COMPLETE = frozenset({'utf8mb4', 'UTF8'})
_UNICODE = _COMPLETE | {'utf8mb3', 'utf8'}
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
# The state and the settings with which a node of a cluster works, and those with which it is up to
# date.
_WORKING = {
    'wsrep_cluster_status': 'Primary',
    'wsrep_ready': 'ON',
    'innodb_autoinc_lock_mode': '2',
    'binlog_format': 'ROW',
}
_CURRENT = {'wsrep_local_state_comment': 'Synced', 'wsrep_dirty_reads': 'OFF'}
# The limits of the role and of the database; negative if there is none.
_POSTGRESQL_LIMITS = sa.text(
    'SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user UNION ALL'
    ' SELECT datconnlimit FROM pg_database WHERE datname = current_database()'
)


def _differing(settings: Mapping[str, str], expected: Mapping[str, str]) -> Iterator[str]:
    """Describe each setting whose value differs, and is no list with the expected value."""
    for name, value in expected.items():
        values = settings.get(name, value).upper().replace(' ', '-').split(',')
        if value.upper() not in values:
            yield f'{name} = {settings[name]} instead of {value}'


@check('Database Access', ALL)
def check_access(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server is read-only or a replica.

    On SQLite: *failure* if the file or its directory is not writable for the user of the command,
    and *warning* for a database in memory.
    """
    if conn.dialect.name == 'sqlite':
        return (yield from _file_access(urls.file_of(database_url(config))))
    settings = shown(conn)
    for name in _READ_ONLY:
        # Newer versions of MariaDB have further values, such as NO_LOCK.
        if settings.get(name, 'OFF').upper() not in ('OFF', '0'):
            yield failure(
                f'The server is read-only ({name} = {settings[name]}).',
                'Connect to the primary server, or disable the setting.',
            )
            break


def _file_access(path: Path | None) -> Steps:
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


@check('Character Set', SERVERS)
def check_characters(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if a collation does not support Unicode, or if those of the tables differ.

    On PostgreSQL: *warning* if the encoding of the database is not UTF8.
    """
    if conn.dialect.name == 'postgresql':
        used = [shown(conn)['server_encoding']]
    else:
        # Without tables, the default of the database applies to the tables that the service
        # creates.
        of_tables = {row['Collation'] for row in _tables(conn)}
        used = sorted(of_tables) or [shown(conn, _SESSION)['collation_database']]
    sets, listed = {name.split('_')[0] for name in used}, ', '.join(used)
    if not sets <= _UNICODE or len(used) > 1:
        yield warning(
            f'{listed}: other characters are rejected, or different collations cannot be compared.',
            'Convert all tables to the same collation of utf8mb4, or use a database in UTF8.',
        )
    note = '' if sets & _COMPLETE else ' Names with four-byte characters are rejected.'
    return f'Collation or encoding: {listed}.{note}'


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


@check('Session Settings', SERVERS, as_service=True)
def check_session(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server writes its binary log with ``binlog_format = STATEMENT``.

    The service then rejects the server. *Failure* if the server or a proxy discards the settings of
    the service: the isolation level READ COMMITTED, the SQL mode, and the client encoding.
    """
    for problem in _differing(shown(conn, _SESSION), _OF_SERVICE):
        yield failure(f'{problem}.', 'Check the proxy between the service and the server.')


@check('Connection Limits', SERVERS)
def check_limits(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the server closes idle connections before the service does.

    The setting is ``wait_timeout`` or, on PostgreSQL, ``idle_session_timeout``. The service closes
    them after ``[placement_database] connection_recycle_time``. *Warning* if the server accepts
    fewer connections than all processes of all machines can open: ``--machines`` times
    ``--processes`` times the connections of a process. These are ``max_pool_size`` plus
    ``max_overflow``, at most two for each of ``--threads``, and one connection of ``/healthcheck``.
    The limits of the account and, on PostgreSQL, of the database count, too. The details contain
    the number of processes for which the connections are sufficient.
    """
    accepted, setting, idle = _server_limits(conn)
    options, size = config.placement_database, config.command
    # It is not None, because the threads limit the number.
    each = connections_of_process(options, size.threads) or 0
    opened, kept = size.machines * size.processes * each, options.connection_recycle_time
    if idle and not 0 <= kept < idle:
        yield warning(
            f'The service keeps idle connections for {kept} seconds, and the server for {idle}.',
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
            '[placement_database] max_pool_size and max_overflow, or the number of processes.',
        )
    return f'{used}. The server accepts {accepted}: enough for {accepted // each} processes.'


def _server_limits(conn: sa.Connection) -> tuple[int, str, int]:
    """Return the number of accepted connections, and the setting that limits idle ones.

    The last value is that of the setting in seconds; 0 means that there is no limit.
    """
    settings = shown(conn)
    accepted = int(settings['max_connections'])
    if conn.dialect.name == 'mysql':
        # In the session, this is the limit of the account; 0 means no limit.
        of_user = int(shown(conn, _SESSION).get('max_user_connections', '0'))
        return min(accepted, of_user or accepted), 'wait_timeout', int(settings['wait_timeout'])
    for name in ('superuser_reserved_connections', 'reserved_connections'):
        accepted -= int(settings.get(name, '0'))
    limits = [accepted, *(limit for limit in conn.scalars(_POSTGRESQL_LIMITS) if limit >= 0)]
    # In milliseconds; new in PostgreSQL 14.
    idle = int(settings.get('idle_session_timeout', '0')) // 1000
    return min(limits), 'idle_session_timeout', idle


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
            f'The node does not work in the cluster with {problem}.',
            'Correct the setting on every node, or restore the connection of the node.',
        )
    waits = config.placement_database.mysql_wsrep_sync_wait
    if waits is not None and not connections.is_sufficient(waits):
        yield failure(
            f'mysql_wsrep_sync_wait is {waits}, so that responses can contain outdated data.',
            f'Remove the option, or set it to {waits | connections.SYNC_WAIT_BITS}.',
        )
    for problem in _differing(settings, _CURRENT):
        yield warning(
            f'The node is behind the cluster, or permits outdated reads: {problem}.',
            'Wait until the node is synchronized, or correct the setting.',
        )
    size = int(settings['wsrep_cluster_size'])
    if size == 1 or size % 2 == 0:
        yield warning(
            f'The number of members is {size}. A single failure can stop the cluster.',
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
            'The group has several primaries, so that requests wait for the writes of all nodes.',
            'Set group_replication_single_primary_mode to ON, or use one node for all requests.',
        )
    if config.placement_database.slave_connection:
        yield warning(
            'slave_connection is set, but the service reads only from connection.',
            'Remove the option [placement_database] slave_connection.',
        )
