"""Checks of databases: access, settings, limits, clusters, privileges, schema, and stored data."""

from collections.abc import Iterator, Mapping, Sequence
import os

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
import sqlalchemy as sa

from placement.admin.preflight.configuration import POLICY_FORMAT
from placement.admin.preflight.database import ALL, MYSQL, SERVERS, database_url, shown
from placement.admin.preflight.model import Skipped, Steps, check, failure, ok, warning
from placement.conf import database_url as urls
from placement.conf.database import connections_of_process
from placement.db import connections, failures
from placement.db.sqlalchemy import migration, models
from placement.objects import online_data_migrations

_SESSION = 'SESSION VARIABLES'
# The character sets that store every character; the others lack those of four bytes in UTF-8.
_COMPLETE = frozenset({'utf8mb4', 'UTF8'})
_UNICODE = _COMPLETE | {'utf8mb3', 'utf8'}
# The settings of the service, by the names that versions of the servers have for them.
_OF_SERVICE = {
    'transaction_isolation': 'READ-COMMITTED',
    'tx_isolation': 'READ-COMMITTED',
    'default_transaction_isolation': 'READ-COMMITTED',
    'sql_mode': 'STRICT_ALL_TABLES',
    'client_encoding': 'UTF8',
}
# The settings of a server that accepts writes. On PostgreSQL, a replica has the last one.
_WRITABLE = {'read_only': 'OFF', 'transaction_read_only': 'OFF'}
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

_GRANT = 'Grant these privileges, or run `placement-manage db sync` as a user that has them.'

_ROOT_PROVIDERS, _CONSUMERS = 'Missing Root Provider IDs', 'Incomplete Consumers'
_DATA_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


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
    and *warning* for a database in memory, which a process loses when it ends.
    """
    if conn.dialect.name == 'sqlite':
        path = urls.file_of(database_url(config))
        if path is None:
            yield warning('The database is in memory.', 'Use the URL of a file or of a server.')
        # SQLite creates its WAL in the directory.
        elif not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            yield failure(f'{path} or its directory is not writable.', 'Make both writable.')
        return f'{path} and its directory are writable.'
    for problem in _differing(shown(conn), _WRITABLE):
        yield failure(f'Read-only: {problem}.', 'Use the primary server.')


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
    """*Failure* if tables do not use InnoDB, because claims could then exceed capacities."""
    if wrong := sorted(one['Name'] for one in _tables(conn) if one['Engine'] != 'InnoDB'):
        yield failure(
            f'Tables without InnoDB: {", ".join(wrong)}.', 'Run ALTER TABLE ... ENGINE = InnoDB.'
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
    """*Warning* if the server accepts fewer connections than all processes can open.

    These are ``--machines`` times ``--processes`` times the connections of a process:
    ``max_pool_size`` plus ``max_overflow``, at most two for each of ``--threads``, and one
    connection of ``/healthcheck``. The limits of the account and, on PostgreSQL, of the database
    count, too. The details contain the number of processes for which the connections are
    sufficient.
    """
    accepted, size = _accepted_connections(conn), config.command
    # It is not None, because the threads limit the number.
    each = connections_of_process(config.placement_database, size.threads) or 0
    opened = size.machines * size.processes * each
    used = (
        f'The service can open {opened} connections (machines: {size.machines}, processes of each: '
        f'{size.processes}, threads of each: {size.threads}, connections of each process: {each})'
    )
    if opened > accepted:
        yield warning(
            f'{used}, and the server accepts {accepted}.',
            'Increase max_connections and the limit of the user, or decrease max_pool_size.',
        )
    return f'{used}. The server accepts {accepted}: enough for {accepted // each} processes.'


def _accepted_connections(conn: sa.Connection) -> int:
    """Return the number of connections that the server accepts from the account."""
    settings = shown(conn)
    accepted = int(settings['max_connections'])
    if conn.dialect.name == 'mysql':
        # In the session, this is the limit of the account; 0 means no limit.
        of_user = int(shown(conn, _SESSION).get('max_user_connections', '0'))
        return min(accepted, of_user or accepted)
    for name in ('superuser_reserved_connections', 'reserved_connections'):
        accepted -= int(settings.get(name, '0'))
    return min([accepted, *(int(one) for one in conn.scalars(_POSTGRESQL_LIMITS) if one >= 0)])


@check('Galera Cluster', MYSQL)
def check_galera(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the node is not part of the primary component or not ready.

    *Failure* if ``innodb_autoinc_lock_mode`` is not 2, if ``binlog_format`` is not ``ROW``, or if
    ``[placement_database] mysql_wsrep_sync_wait`` lacks one of the bits 1, 2, and 4, because
    responses can then contain outdated data; see :ref:`galera`. *Warning* if the node is not
    synchronized, or if ``wsrep_dirty_reads`` is ``ON``. *Warning* if the number of members is one
    or even, because a single failure, for example of the network, can then stop the cluster. An
    arbitrator (garbd) counts as a member.
    """
    settings = shown(conn)
    if settings.get('wsrep_on', 'OFF').upper() != 'ON':
        raise Skipped('The server is not a node of a Galera cluster.')
    settings |= shown(conn, "GLOBAL STATUS LIKE 'wsrep%%'")
    for problem in _differing(settings, _WORKING):
        yield failure(f'The node does not work: {problem}.', 'Correct or reconnect the node.')
    waits = config.placement_database.mysql_wsrep_sync_wait
    if waits is not None and not connections.is_sufficient(waits):
        enough = waits | connections.SYNC_WAIT_BITS
        yield failure(f'mysql_wsrep_sync_wait is {waits}.', f'Remove it, or set it to {enough}.')
    for problem in _differing(settings, _CURRENT):
        yield warning(f'Outdated reads: {problem}.', 'Wait, or correct the setting.')
    size = int(settings['wsrep_cluster_size'])
    if size == 1 or size % 2 == 0:
        yield warning(f'The number of members is {size}.', 'Use three or another odd number.')
    return f'The node is part of the primary component with {size} members.'


@check('Replication Group', MYSQL)
def check_group(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if the group has several primaries; see :ref:`group-replication`.

    Each request then waits for the writes of all nodes, and conflicting writes on two nodes are
    repeated. *Warning* if ``[placement_database] slave_connection`` is set: the service reads only
    from ``connection``, because a replica can return outdated data.
    """
    settings = shown(conn)
    if not settings.get('group_replication_group_name'):
        raise Skipped('The server is not a node of a replication group.')
    if connections.has_several_primaries(settings):
        yield warning(
            'The group has several primaries.', 'Set group_replication_single_primary_mode to ON.'
        )
    if config.placement_database.slave_connection:
        yield warning('slave_connection is set, and not used.', 'Remove the option.')


# Privileges, schema, and stored data ------------------------------------------------


@check('Database Privileges', SERVERS, needs='Database Access')
def check_privileges(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the user lacks SELECT, INSERT, UPDATE, or DELETE on a table of Placement.

    On PostgreSQL, USAGE on the sequences is required, too. If the schema is older than this
    release: *failure* if the user cannot migrate it, that is, lacks CREATE, ALTER, DROP, or INDEX
    on MySQL or MariaDB, or CREATE on the schema and ownership of the tables on PostgreSQL. The
    check executes statements that affect no row and rolls them back, because roles and patterns of
    names make grants hard to interpret. On MySQL and MariaDB, it tries a migration with statements
    about a table that does not exist.
    """
    schema = migration.read_schema(conn)
    if lacking := _missing_privileges(conn, schema.existing):
        lists = (f'{privilege} on {", ".join(names)}' for privilege, names in lacking.items())
        yield failure(
            f'The user lacks: {"; ".join(lists)}.',
            'Grant SELECT, INSERT, UPDATE, and DELETE, on PostgreSQL also USAGE on all sequences.',
        )
    elif schema.existing:
        yield ok(f'The user can read and write {len(schema.existing)} tables.')
    if schema.is_older:
        denied = ', '.join(migration.missing_privileges(conn))
        text = f'The user cannot migrate the schema; it lacks: {denied}.'
        yield failure(text, _GRANT) if denied else ok('The user can migrate the schema.')


def _missing_privileges(conn: sa.Connection, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the tables or sequences for each privilege that is missing."""
    stored = sa.MetaData()
    stored.reflect(conn, only=names, resolve_fks=False)
    missing: dict[str, list[str]] = {}
    for name in names:
        for privilege, statement in _attempts(stored.tables[name]).items():
            if _is_denied(conn, statement):
                missing.setdefault(privilege, []).append(name)
    if conn.dialect.name == 'postgresql':
        # They generate the ids of new rows.
        sequences = {f'{name}_id_seq' for name in names} & {*sa.inspect(conn).get_sequence_names()}
        for name in sorted(sequences):
            if not conn.scalar(sa.select(sa.func.has_sequence_privilege(name, 'USAGE, UPDATE'))):
                missing.setdefault('USAGE', []).append(name)
    return missing


def _attempts(table: sa.Table) -> dict[str, sa.Executable]:
    """Return a statement for each privilege that needs it on all columns and affects no row."""
    no_row = sa.select(table).where(sa.false())
    names = table.c.keys()
    return {
        'SELECT': no_row,
        'INSERT': sa.insert(table).from_select(names, no_row, include_defaults=False),
        'UPDATE': sa.update(table).values(dict.fromkeys(names, sa.null())).where(sa.false()),
        'DELETE': sa.delete(table).where(sa.false()),
    }


def _is_denied(conn: sa.Connection, statement: sa.Executable) -> bool:
    """Execute a statement, roll it back, and return whether the server denies it."""
    try:
        conn.execute(statement)
    except Exception as error:
        if not failures.is_access_denied(error):
            raise
        return True
    finally:
        conn.rollback()
    return False


@check('Schema Revision', ALL)
def check_revision(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if tables are missing, or if the schema is older than this release.

    The latter is no failure if ``[placement_database] sync_on_startup`` is true and the user has
    the privileges to upgrade the schema. *Warning* if the revision is unknown, because it can
    belong to a newer release, or if the database has no revision that the user can read.
    """
    schema, head = migration.read_schema(conn), migration.revisions()[0]
    missing = ', '.join(schema.missing)
    if schema.is_older:
        state = f'The schema is at revision {schema.revision or "none"}; this release needs {head}.'
        if config.placement_database.sync_on_startup and not migration.missing_privileges(conn):
            return f'{state} The service upgrades the schema when it starts (sync_on_startup).'
        yield failure(state, 'Run `placement-manage db sync`.')
    elif missing and schema.revision in (None, head):
        yield failure(
            f'Revision {schema.revision or "unknown"}: these tables do not exist: {missing}.',
            'Check that the URL names the right database, or restore it from a backup.',
        )
    elif schema.revision is None:
        # MySQL and MariaDB do not list a table that the account cannot read.
        yield warning(
            'All tables exist, but the database has no revision, or the user cannot read it.',
            f'Grant SELECT on {migration.REVISION_TABLE} to the user. If there is no such table '
            f'and the schema is that of revision {head}, run `placement-manage db stamp head`.',
        )
    elif schema.revision != head:
        yield warning(f'The revision {schema.revision} is unknown.', 'Install the newer release.')
    return f'The schema is at revision {head}.'


# The upgrade checks ------------------------------------------------------------


@check(_ROOT_PROVIDERS, ALL)
def check_root_providers(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if there are providers without a root provider, which the API does not return."""
    query = sa.select(sa.func.count()).where(models.resource_providers.c.root_provider_id.is_(None))
    if count := conn.scalar(query):
        yield failure(f'Resource providers without a root provider id: {count}.', _DATA_REMEDY)


@check(_CONSUMERS, ALL)
def check_consumers(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Warning* if there are allocations without a consumer.

    They count as usage, but the API does not return them.
    """
    consumers = sa.func.count(models.allocations.c.consumer_id.distinct())
    if count := conn.scalar(online_data_migrations.select_without_consumer(consumers)):
        yield warning(f'Missing consumers that have allocations: {count}.', _DATA_REMEDY)


class UpgradeChecks(upgradecheck.UpgradeCommands):
    """The checks of `placement-status upgrade check`, in the order of the report.

    The checks also support the database schema of the previous release.

    :param config: the configuration that names the policy file to check
    :param conn: a connection to the database of this process
    """

    def __init__(self, config: cfg.ConfigOpts, conn: sa.Connection) -> None:
        self._upgrade_checks = (
            (_ROOT_PROVIDERS, lambda _: _result(check_root_providers(config, conn))),
            (_CONSUMERS, lambda _: _result(check_consumers(config, conn))),
            (POLICY_FORMAT, (common_checks.check_policy_json, {'conf': config})),
        )


def _result(steps: Steps) -> upgradecheck.Result:
    """Return the result of an upgrade check that yields at most one verdict."""
    for verdict in steps:
        code = upgradecheck.Code[verdict.result.upper()]
        return upgradecheck.Result(code, f'{verdict.detail} {verdict.remedy}')
    return upgradecheck.Result(upgradecheck.Code.SUCCESS)
