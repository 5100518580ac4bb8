"""Checks of the privileges of the account, of the schema revision, and of the stored data."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
import sqlalchemy as sa

from placement.admin.preflight.configuration import POLICY_FORMAT
from placement.admin.preflight.database import ALL, SERVERS
from placement.admin.preflight.model import Skipped, Steps, check, failure, ok, warning
from placement.db import failures
from placement.db.sqlalchemy import migration, models
from placement.objects import online_data_migrations

_GRANT = 'Grant these privileges, or run `placement-manage db sync` as a user that has them.'

_ROOT_PROVIDERS, _CONSUMERS = 'Missing Root Provider IDs', 'Incomplete Consumers'
_DATA_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


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
    if not schema.existing and not schema.is_older:
        raise Skipped('There are no tables.')
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
            may_use = sa.func.has_sequence_privilege(name, 'USAGE, UPDATE')
            if not conn.scalar(sa.select(may_use)):
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
    the privileges to upgrade the schema. *Warning* if the revision is unknown, or if the database
    has no revision that the user can read.
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
        yield warning(
            f'The revision {schema.revision} is unknown. It can belong to a newer release.',
            'Check that the URL names the right database, or install the newer release.',
        )
    return f'The schema is at revision {head}.'


# The upgrade checks ------------------------------------------------------------


@check(_ROOT_PROVIDERS, ALL)
def check_root_providers(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if there are providers without a root provider, which the API does not return."""
    providers = models.resource_providers
    query = sa.select(sa.func.count()).where(providers.c.root_provider_id.is_(None))
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
