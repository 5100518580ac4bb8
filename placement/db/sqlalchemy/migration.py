"""Upgrade the database schema, and read or set its revision.

The directory `alembic/versions` contains the revisions. Downgrades are not supported.
"""

from collections.abc import Iterator
import contextlib
from dataclasses import dataclass
import functools
import hashlib
import logging
import pathlib
import time

from alembic import command, config, script, util
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa

from placement import exception
from placement.db import connections, failures, pools
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models

LOG = logging.getLogger(__name__)

_INI = pathlib.Path(__file__).with_name('alembic.ini')

# Alembic creates this table, which stores the current revision.
REVISION_TABLE = 'alembic_version'
_REVISION = sa.table(REVISION_TABLE, sa.column('version_num'))

# On a cluster, a process gives up its upgrade if the revision of the database has not changed for
# this number of seconds.
_STALL_SECONDS = 60.0
_PAUSE_SECONDS = 0.5

# No table has this name. The server checks the privileges before the existence of the table, so
# that a permitted statement fails too and changes nothing.
_NO_TABLE = 'placement_privilege_check'
_MYSQL_MIGRATIONS = {
    'CREATE': f'CREATE TABLE {_NO_TABLE} LIKE {_NO_TABLE}_source',
    'ALTER': f"ALTER TABLE {_NO_TABLE} COMMENT = ''",
    'DROP': f'DROP TABLE {_NO_TABLE}',
    'INDEX': f'DROP INDEX {_NO_TABLE} ON {_NO_TABLE}',
}

_CLASSES = sa.table(
    'pg_class', sa.column('oid'), sa.column('relname'), sa.column('relowner'), schema='pg_catalog'
)
# MySQL and MariaDB use different values for "no timeout", so this module waits repeatedly with a
# timeout.
_MYSQL_LOCK_SECONDS = 10
# The key of the PostgreSQL advisory lock; other programs in the same database must not use it.
_POSTGRESQL_LOCK = 0x706C6163656D656E


def upgrade(revision: str = 'head') -> None:
    """Upgrade the database to a revision; several processes may call this function concurrently.

    :param revision: the id of a revision, or `head` for the newest one
    :raises RuntimeError: a migration refuses to run because of the stored data; the message names
        the remedy
    :raises exception.UnsuitableDatabase: this release does not know the revision of the database
    """
    configuration = _configuration()
    target = script.ScriptDirectory.from_config(configuration).as_revision_number(revision)
    current = version()
    if current == target:
        return
    if current is not None and current not in revisions():
        raise exception.UnsuitableDatabase(
            f'The schema of the database is at revision {current}, which this release does not '
            'know, so it cannot upgrade the schema. Use the release that upgraded the database, or '
            'a newer one.'
        )
    if _on_cluster():
        _upgrade_on_cluster(configuration, str(target))
    else:
        _upgrade(configuration, revision)


def version() -> str | None:
    """Return the id of the current revision of the database; None if no revision is stored."""
    with db_engine.get_placement_engine().connect() as conn:
        return read_version(conn)


def read_version(conn: sa.Connection) -> str | None:
    """Return the id of the current revision of the database; None if no revision is stored."""
    return read_revision(conn) if sa.inspect(conn).has_table(_REVISION.name) else None


def read_revision(conn: sa.Connection) -> str | None:
    """Return the revision that the existing table of revisions contains; None if it is empty."""
    current: str | None = conn.scalar(sa.select(_REVISION.c.version_num))
    return current


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a database.

    :ivar revision: the current revision; None if no revision is stored
    :ivar existing: the tables of this release that exist
    :ivar missing: the tables of this release that do not exist
    """

    revision: str | None
    existing: list[str]
    missing: list[str]

    @property
    def is_older(self) -> bool:
        """Whether an upgrade changes the schema."""
        if self.revision is None:
            return not self.existing
        return self.revision in revisions()[1:]


def read_schema(conn: sa.Connection) -> Schema:
    """Return the schema of the database."""
    tables = set(sa.inspect(conn).get_table_names())
    revision = read_revision(conn) if REVISION_TABLE in tables else None
    expected = set(models.metadata.tables)
    return Schema(revision, sorted(tables & expected), sorted(expected - tables))


def require_current() -> None:
    """Check that the schema of the database is recent enough for this release.

    This function accepts an unknown revision, which belongs to a newer release. It also accepts a
    database without a revision if all tables exist.

    :raises exception.UnsuitableDatabase: the schema is older than this release; the message names
        the remedy
    """
    with db_engine.snapshot() as conn:
        schema = read_schema(conn)
    if schema.is_older or (schema.revision is None and schema.missing):
        state = (
            f'The schema of the database is at revision {schema.revision or "none"}, but this '
            f'release needs revision {revisions()[0]}'
        )
        with db_engine.get_placement_engine().connect() as conn:
            denied = missing_privileges(conn)
        if denied:
            raise exception.UnsuitableDatabase(
                f'{state}, and the user of the database cannot migrate it, because it lacks '
                f'{", ".join(denied)}. Grant these privileges and run `placement-manage db sync`, '
                'or run it as a user that has them.'
            )
        raise exception.UnsuitableDatabase(
            f'{state}. Run `placement-manage db sync`, or set [placement_database] '
            'sync_on_startup to true.'
        )


def missing_privileges(conn: sa.Connection) -> list[str]:
    """Return the privileges that the user of a connection lacks to migrate the schema."""
    if conn.dialect.name == 'mysql':
        return [name for name, text in _MYSQL_MIGRATIONS.items() if _is_denied(conn, text)]
    if conn.dialect.name == 'postgresql':
        return list(_missing_on_postgresql(conn))
    return []


def _is_denied(conn: sa.Connection, statement: str) -> bool:
    """Execute a statement that fails, and return whether the server denies it."""
    try:
        conn.exec_driver_sql(statement)
    except Exception as error:
        return failures.is_access_denied(error)
    finally:
        conn.rollback()
    return False


def _missing_on_postgresql(conn: sa.Connection) -> Iterator[str]:
    may_create = sa.func.has_schema_privilege(sa.func.current_schema(), 'CREATE')
    if not conn.scalar(sa.select(may_create)):
        yield 'CREATE on the schema'
    # Only the owner of a table can alter it.
    owned_by_others = sa.select(_CLASSES.c.relname).where(
        _CLASSES.c.relname.in_(list(models.metadata.tables)),
        sa.func.pg_table_is_visible(_CLASSES.c.oid),
        sa.not_(sa.func.pg_has_role(_CLASSES.c.relowner, 'USAGE')),
    )
    if conn.execute(owned_by_others).first() is not None:
        yield 'ownership of the tables'


def stamp(version: str) -> None:
    """Store a revision in the database without running a migration.

    :raises alembic.util.CommandError: the revision does not exist; the message names the existing
        ones
    """
    configuration = _configuration()
    try:
        script.ScriptDirectory.from_config(configuration).get_revisions(version)
    except (util.CommandError, AssertionError) as error:  # AssertionError: the text is empty
        raise util.CommandError(
            f'This release has no schema revision {version or "(empty)"}. Use head, or one of '
            f'{", ".join(revisions())}.'
        ) from error
    with exclusive_transaction(db_engine.get_placement_engine()) as conn:
        configuration.attributes['connection'] = conn
        command.stamp(configuration, version)


def create_schema(engine: sa.Engine | None = None) -> None:
    """Create all tables without storing a revision; only tests use this function.

    :param engine: the engine to use; by default, the engine of this process
    """
    models.metadata.create_all(db_engine.get_placement_engine() if engine is None else engine)


@functools.cache
def revisions() -> tuple[str, ...]:
    """Return the ids of all revisions of this release, newest first."""
    directory = script.ScriptDirectory.from_config(_configuration())
    return tuple(item.revision for item in directory.walk_revisions())


def _configuration() -> config.Config:
    return config.Config(str(_INI))


def _on_cluster() -> bool:
    with db_engine.get_placement_engine().connect() as conn:
        return is_cluster(conn)


def _upgrade(configuration: config.Config, revision: str) -> None:
    with exclusive_transaction(db_engine.get_placement_engine()) as conn:
        configuration.attributes['connection'] = conn
        command.upgrade(configuration, revision)


def _upgrade_on_cluster(configuration: config.Config, target: str) -> None:
    """Upgrade the schema on a Galera cluster, where no lock excludes processes on other nodes.

    All nodes execute schema changes in the same order, and the first statement of each revision
    succeeds only once. If the upgrade fails in one process, that process retries until the database
    has the target revision, or until the revision has not changed for `_STALL_SECONDS`.
    """
    last = version()
    deadline = time.monotonic() + _STALL_SECONDS
    while True:
        try:
            _upgrade(configuration, target)
        except RuntimeError:
            raise  # A migration refuses to run because of the stored data.
        except Exception as error:
            # The cause is a concurrent upgrade or a defect. If the revision does not change for a
            # long time, there is no concurrent upgrade.
            if failures.is_access_denied(error):
                raise
            current = version()
            if current == target:
                return
            if current != last:
                last = current
                deadline = time.monotonic() + _STALL_SECONDS
            elif time.monotonic() > deadline:
                raise
            LOG.info('The upgrade failed, possibly because of a concurrent upgrade: %s', error)
            time.sleep(_PAUSE_SECONDS)
        else:
            return


# The lock of a migration --------------------------------------------------


@contextlib.contextmanager
def exclusive_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction that excludes other processes until the transaction ends.

    Other processes wait in this function. When a process dies, the server closes its connection and
    releases the lock. The nodes of a Galera cluster do not share locks, so on a cluster this
    function does not exclude other processes, and the caller has to handle conflicts (see
    `is_cluster`).
    """
    with _connected(engine) as conn:
        if conn.dialect.name == 'mysql':
            # A migration may have to wait for table locks longer than a request.
            conn.exec_driver_sql('SET SESSION lock_wait_timeout = @@GLOBAL.lock_wait_timeout')
            with _mysql_lock(conn), conn.begin():
                yield conn
            return
        # On SQLite, a write transaction excludes all other write transactions.
        with conn.begin():
            if conn.dialect.name == 'postgresql':
                conn.exec_driver_sql('SET LOCAL lock_timeout = 0')
                conn.execute(sa.select(sa.func.pg_advisory_xact_lock(_POSTGRESQL_LOCK)))
            yield conn


@contextlib.contextmanager
def _connected(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection that no request uses, and whose statements may take any time.

    An ALTER TABLE can take many minutes.
    """
    if engine.dialect.name == 'sqlite':
        with pools.begins_with_lock(engine).connect() as conn:
            yield conn
        return
    unlimited = engines.create_engine(engine.url, mysql_sql_mode='TRADITIONAL', max_retries=0)
    limits = connections.Timeouts(db_engine.configure.limits.connect)
    connections.limit_waits(unlimited, limits)
    connections.prepare(unlimited)
    try:
        with unlimited.execution_options(isolation_level='READ COMMITTED').connect() as conn:
            yield conn
    finally:
        unlimited.dispose()


def is_cluster(conn: sa.Connection) -> bool:
    """Whether the server is a node of a Galera cluster."""
    if conn.dialect.name != 'mysql':
        return False
    row = conn.exec_driver_sql("SHOW VARIABLES LIKE 'wsrep_on'").first()
    return row is not None and str(row[1]).upper() == 'ON'


@contextlib.contextmanager
def _mysql_lock(conn: sa.Connection) -> Iterator[None]:
    cluster = is_cluster(conn)
    conn.rollback()
    if cluster:
        # The lock would exclude only processes that are connected to the same node, and some
        # clusters reject GET_LOCK().
        yield
        return
    # Lock names are shared by all databases of a server, and limited to 64 characters.
    database = hashlib.sha256(str(conn.engine.url.database).encode()).hexdigest()
    name = f'placement.{database[:32]}'
    while conn.scalar(sa.select(sa.func.get_lock(name, _MYSQL_LOCK_SECONDS))) != 1:
        LOG.info('Waiting for another process to migrate the database.')
        conn.rollback()
    conn.commit()
    try:
        yield
    finally:
        # If the connection was lost, the server has already released the lock.
        if not conn.invalidated:
            conn.scalar(sa.select(sa.func.release_lock(name)))
            conn.commit()
