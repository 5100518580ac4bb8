"""Checks of the settings of MySQL and MariaDB."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import database, limits
from placement.admin.preflight.model import Verdict, failure, ok, skipped, warning
from placement.db import connections
from placement.db.sqlalchemy import models

_GLOBAL = 'SHOW GLOBAL VARIABLES'
_SESSION = 'SHOW SESSION VARIABLES'
_TRANSACTIONAL = 'InnoDB'
# These character sets store every character of UTF-8, except for those of four bytes in utf8mb3.
_UNICODE = frozenset({'utf8mb4', 'utf8mb3', 'utf8'})

_SCHEMATA = sa.table(
    'schemata',
    sa.column('schema_name'),
    sa.column('default_character_set_name'),
    sa.column('default_collation_name'),
    schema='information_schema',
)
_TABLES = sa.table(
    'tables',
    sa.column('table_schema'),
    sa.column('table_name'),
    sa.column('engine'),
    sa.column('table_collation'),
    schema='information_schema',
)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The storage engine and the collation of a table of the service."""

    name: str
    engine: str
    collation: str


def read_writable(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the server accepts writes."""
    return [judge_writable(database.variables(conn, _GLOBAL))]


def judge_writable(settings: Mapping[str, str]) -> Verdict:
    """Judge the read-only settings of a server."""
    for name in ('super_read_only', 'read_only'):
        # Newer versions of MariaDB have further values, such as NO_LOCK.
        if settings.get(name, 'OFF').upper() not in ('OFF', '0'):
            return failure(
                f'The server is read-only ({name} = {settings[name]}).',
                'Connect to the primary server, or disable the setting.',
            )
    return ok('The server accepts writes.')


def read_character_set(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the character set of the database and the collations of its tables."""
    query = sa.select(
        _SCHEMATA.c.default_character_set_name, _SCHEMATA.c.default_collation_name
    ).where(_SCHEMATA.c.schema_name == sa.func.database())
    character_set, collation = conn.execute(query).one()
    return judge_character_set(character_set, collation, _read_tables(conn))


def _read_tables(conn: sa.Connection) -> list[TableFacts]:
    query = sa.select(_TABLES.c.table_name, _TABLES.c.engine, _TABLES.c.table_collation).where(
        _TABLES.c.table_schema == sa.func.database(),
        _TABLES.c.table_name.in_(list(models.metadata.tables)),
    )
    return [TableFacts(*map(str, row)) for row in conn.execute(query)]


def judge_character_set(
    character_set: str, collation: str, tables: Sequence[TableFacts]
) -> list[Verdict]:
    """Judge the default character set of the database and the collations of its tables.

    :param collation: the default collation of the database
    """
    # Without tables, the defaults of the database apply to the tables that the service creates.
    collations = sorted({table.collation for table in tables}) or [collation]
    sets = {name.split('_')[0] for name in collations}
    verdicts = []
    if not sets <= _UNICODE:
        verdicts.append(
            warning(
                f'Collations: {", ".join(collations)}. Names with other characters are rejected.',
                'Convert the tables to utf8mb4.',
            )
        )
    if len(collations) > 1:
        verdicts.append(
            warning(
                f'The tables have different collations: {", ".join(collations)}. Statements that '
                'compare their columns can fail.',
                'Convert all tables to the same collation.',
            )
        )
    if verdicts:
        return verdicts
    note = '' if 'utf8mb4' in sets else ' Names with four-byte characters are rejected.'
    return [ok(f'Character set {character_set}, collation {collations[0]}.{note}')]


def read_storage_engine(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the tables support transactions."""
    default = database.variables(conn, _GLOBAL).get('default_storage_engine', '')
    return [judge_storage_engine(default, _read_tables(conn))]


def judge_storage_engine(default: str, tables: Iterable[TableFacts]) -> Verdict:
    """Judge the storage engine of the tables, or the default if there are no tables.

    :param default: the default storage engine of the server
    """
    engines = {table.name: table.engine for table in tables}
    wrong = sorted(name for name, engine in engines.items() if engine != _TRANSACTIONAL)
    if wrong:
        return failure(
            f'These tables do not use InnoDB: {", ".join(wrong)}. Claims could exceed capacities.',
            'Run ALTER TABLE ... ENGINE = InnoDB for each table.',
        )
    if not engines and default != _TRANSACTIONAL:
        return failure(
            f'The default storage engine is {default}.',
            'Set default_storage_engine to InnoDB before you create the tables.',
        )
    return ok('The tables use InnoDB.' if engines else 'The default storage engine is InnoDB.')


def read_binary_log(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the binary log permits READ COMMITTED."""
    return [judge_binary_log(database.variables(conn, _GLOBAL))]


def judge_binary_log(settings: Mapping[str, str]) -> Verdict:
    """Judge the format of the binary log."""
    if settings.get('log_bin', 'OFF').upper() != 'ON':
        return ok('The server writes no binary log.')
    name = settings.get('binlog_format', 'ROW').upper()
    if name == 'STATEMENT':
        return failure(
            'binlog_format is STATEMENT, which does not permit READ COMMITTED. The service does '
            'not start.',
            'Set binlog_format to ROW or MIXED.',
        )
    return ok(f'binlog_format is {name}.')


def read_group(conn: sa.Connection, config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the settings of a node of a replication group."""
    settings = database.variables(conn, _GLOBAL)
    return judge_group(settings, bool(config.placement_database.slave_connection))


def judge_group(settings: Mapping[str, str], has_replica: bool) -> list[Verdict]:
    """Judge a node of a replication group.

    :param has_replica: whether the option `[placement_database] slave_connection` is set
    """
    if not settings.get('group_replication_group_name'):
        return [skipped('The server is not a node of a replication group.')]
    verdicts = []
    if connections.has_several_primaries(settings):
        verdicts.append(
            warning(
                'The group has several primaries. Each request waits for the writes of all nodes, '
                'and conflicting writes on two nodes are repeated.',
                'Set group_replication_single_primary_mode to ON, or send all requests of the '
                'service to one node.',
            )
        )
    if has_replica:
        verdicts.append(
            warning(
                'slave_connection is set, but the service reads only from connection, because a '
                'replica can return outdated data.',
                'Remove the option [placement_database] slave_connection.',
            )
        )
    return verdicts or [ok('The node is part of a group with a single primary.')]


def read_session(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the settings of a connection on which the settings of the service were applied."""
    return judge_session(database.variables(conn, _SESSION))


def judge_session(settings: Mapping[str, str]) -> list[Verdict]:
    """Judge whether the server has accepted the settings of the service.

    A proxy between the service and the server can discard them.
    """
    isolation = settings.get('transaction_isolation') or settings.get('tx_isolation', 'unknown')
    modes = settings.get('sql_mode', '').upper().split(',')
    remedy = 'Check the proxy between the service and the server.'
    verdicts = []
    if isolation.upper() != 'READ-COMMITTED':
        verdicts.append(failure(f'The isolation level is {isolation}.', remedy))
    if 'STRICT_ALL_TABLES' not in modes:
        verdicts.append(failure(f'sql_mode is {",".join(modes)}, which is not strict.', remedy))
    return verdicts or [ok(f'Isolation level {isolation}, sql_mode {",".join(sorted(modes))}.')]


def read_limits(conn: sa.Connection, config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the limits of the server for connections."""
    settings = database.variables(conn, _GLOBAL)
    # In the session, this is the limit of the account; 0 means no limit.
    of_user = int(database.variables(conn, _SESSION).get('max_user_connections', '0'))
    of_server = int(settings['max_connections'])
    accepted = limits.Limits(
        connections=min(of_server, of_user or of_server),
        idle_seconds=int(settings['wait_timeout']),
        idle_setting='wait_timeout',
    )
    return limits.judge(accepted, limits.service(config))
