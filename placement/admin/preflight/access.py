"""Checks of what the account of the service can do in the database.

The check of privileges tries each privilege with the account instead of reading its grants, because
roles and patterns of names make grants hard to interpret.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import os
from pathlib import Path

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import database
from placement.admin.preflight.database import MYSQL, POSTGRESQL, SERVERS, SQLITE
from placement.admin.preflight.model import Skipped, Steps, Verdict, check, failure, ok, warning
from placement.db import failures
from placement.db.sqlalchemy import migration, models

_REQUIRED = ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
GRANT = 'Grant these privileges, or run `placement-manage db sync` as a user that has them.'
# The sequences that generate ids of new rows and that the account cannot use.
_DENIED_SEQUENCES = sa.text(
    'SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_sequence s'
    ' ON s.seqrelid = c.oid WHERE c.relname = ANY(:names) AND pg_table_is_visible(c.oid)'
    " AND NOT has_sequence_privilege(s.seqrelid, 'USAGE, UPDATE') ORDER BY c.relname"
)


@check('Database Access', needs='Database Connection', engines=MYSQL)
def check_mysql_access(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server is read-only."""
    settings = database.shown(conn, 'GLOBAL VARIABLES')
    for name in ('super_read_only', 'read_only'):
        # Newer versions of MariaDB have further values, such as NO_LOCK.
        if settings.get(name, 'OFF').upper() not in ('OFF', '0'):
            yield failure(
                f'The server is read-only ({name} = {settings[name]}).',
                'Connect to the primary server, or disable the setting.',
            )
            break
    return 'The server accepts writes.'


@check('Database Access', needs='Database Connection', engines=POSTGRESQL)
def check_postgresql_access(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the server is read-only or a replica."""
    if conn.scalar(sa.select(sa.func.pg_is_in_recovery())):
        yield failure('The server is a replica.', 'Connect to the primary server.')
    elif database.postgresql_settings(conn).get('default_transaction_read_only') == 'on':
        yield failure(
            'Transactions are read-only (default_transaction_read_only = on).',
            'Disable the setting for the user or the database of the service.',
        )
    return 'The server accepts writes.'


@check('Database Access', needs='Database Connection', engines=SQLITE)
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


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of the database.

    :ivar revision: the revision in the database; None if it has no revision
    :ivar existing: the tables of this release that exist
    :ivar missing: the tables of this release that do not exist
    """

    revision: str | None
    existing: list[str]
    missing: list[str]

    @property
    def is_older(self) -> bool:
        """Whether `placement-manage db sync` changes the schema."""
        if self.revision is None:
            return not self.existing
        return self.revision in migration.revisions()[1:]


def read_schema(conn: sa.Connection) -> Schema:
    """Return the schema of the database."""
    tables = set(sa.inspect(conn).get_table_names())
    revision = migration.read_revision(conn) if migration.REVISION_TABLE in tables else None
    expected = set(models.metadata.tables)
    return Schema(revision, sorted(tables & expected), sorted(expected - tables))


@check('Database Privileges', needs='Database Access', engines=SERVERS)
def check_privileges(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if the user lacks SELECT, INSERT, UPDATE, or DELETE on a table of Placement.

    On PostgreSQL, USAGE on the sequences is required, too. If the schema is older than this
    release: *failure* if the user cannot migrate it, that is, lacks CREATE, ALTER, DROP, or INDEX
    on MySQL or MariaDB, or CREATE on the schema and ownership of the tables on PostgreSQL. The
    check executes statements that affect no row and rolls them back. On MySQL and MariaDB, it tries
    a migration with statements about a table that does not exist.
    """
    schema = read_schema(conn)
    if not schema.existing and not schema.is_older:
        raise Skipped('There are no tables.')
    if schema.existing:
        yield _judge_privileges(dict(_missing_privileges(conn, schema.existing)), schema.existing)
    if schema.is_older:
        denied = ', '.join(migration.missing_privileges(conn))
        lacking = f'The user cannot migrate the schema; it lacks: {denied}.'
        yield failure(lacking, GRANT) if denied else ok('The user can migrate the schema.')
    return ''


def _judge_privileges(missing: dict[str, list[str]], tables: list[str]) -> Verdict:
    if not missing:
        return ok(f'The user can read and write {len(tables)} tables.')
    lists = [f'{privilege} on {", ".join(names)}' for privilege, names in missing.items()]
    sequences = ' Grant USAGE on all sequences.' if 'USAGE' in missing else ''
    return failure(
        f'The user lacks: {"; ".join(lists)}.',
        'Grant SELECT, INSERT, UPDATE, and DELETE on all tables of the database to the user.'
        + sequences,
    )


def _missing_privileges(
    conn: sa.Connection, names: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each privilege that is missing, with the names of the tables or sequences."""
    inspector = sa.inspect(conn)
    tables = [
        sa.table(name, *(sa.column(column['name']) for column in inspector.get_columns(name)))
        for name in names
    ]
    for privilege in _REQUIRED:
        denied = [table.name for table in tables if _is_denied(conn, _attempt(privilege, table))]
        if denied:
            yield privilege, denied
    if conn.dialect.name == 'postgresql':
        sequences = {'names': [f'{name}_id_seq' for name in names]}
        if denied := list(conn.scalars(_DENIED_SEQUENCES, sequences)):
            yield 'USAGE', denied


def _attempt(privilege: str, table: sa.TableClause) -> sa.Executable:
    """Return a statement that needs one privilege on all columns and affects no row."""
    values = {column.name: sa.null() for column in table.c}
    match privilege:
        case 'INSERT':
            rows = sa.select(*(value.label(name) for name, value in values.items()))
            none = rows.where(sa.false())
            return sa.insert(table).from_select(list(values), none, include_defaults=False)
        case 'UPDATE':
            return sa.update(table).values(values).where(sa.false())
        case 'DELETE':
            return sa.delete(table).where(sa.false())
    return sa.select(table).where(sa.false())


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
