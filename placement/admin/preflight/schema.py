"""Checks of the schema revision and of the stored data."""

from collections.abc import Callable

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import sqlalchemy as sa

from placement.admin import upgrade_checks
from placement.admin.preflight.access import GRANT, Schema, read_schema
from placement.admin.preflight.database import ALL
from placement.admin.preflight.model import (
    Skipped,
    Steps,
    Verdict,
    check,
    failure,
    judged,
    ok,
    warning,
)
from placement.db.sqlalchemy import migration, models

_CONNECTION = 'Database Connection'


@check('Schema Revision', needs=_CONNECTION, engines=ALL)
def check_revision(config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """*Failure* if tables are missing, or if the schema is older than this release.

    The latter is no failure if ``[placement_database] sync_on_startup`` is true and the user has
    the privileges to upgrade the schema. *Warning* if the revision is unknown, or if the database
    has no revision that the user can read.
    """
    schema = read_schema(conn)
    head, current = migration.revisions()[0], schema.revision
    if schema.is_older:
        denied = ', '.join(migration.missing_privileges(conn))
        yield _judge_older(schema, head, denied, config.placement_database.sync_on_startup)
    elif current is None:
        yield _judge_without_revision(schema, head)
    elif current != head:
        yield warning(
            f'The revision {current} is unknown. It can belong to a newer release.',
            'Check that the URL names the right database, or install the newer release.',
        )
    elif schema.missing:
        yield failure(
            f'The revision is {head}, but these tables do not exist: {", ".join(schema.missing)}.',
            'Restore the database from a backup.',
        )
    return f'The schema is at revision {head}.'


def _judge_older(schema: Schema, head: str, denied: str, sync_on_startup: bool) -> Verdict:
    state = f'The schema is at revision {schema.revision or "none"}; this release needs {head}.'
    if denied:
        return failure(f'{state} The user cannot upgrade it; it lacks: {denied}.', GRANT)
    if sync_on_startup:
        return ok(f'{state} The service upgrades the schema when it starts (sync_on_startup).')
    return failure(state, 'Run `placement-manage db sync`.')


def _judge_without_revision(schema: Schema, head: str) -> Verdict:
    if schema.missing:
        return failure(
            'The database has no revision and only a part of the tables. Missing: '
            f'{", ".join(schema.missing)}.',
            'Check that the URL names the right database, or restore it from a backup.',
        )
    # MySQL and MariaDB do not list a table that the account cannot read.
    return warning(
        'All tables exist, but the database has no revision, or the user cannot read it.',
        f'Grant SELECT on {migration.REVISION_TABLE} to the user. If there is no such table and '
        f'the schema is that of revision {head}, run `placement-manage db stamp head`.',
    )


@check(upgrade_checks.ROOT_PROVIDERS, needs=_CONNECTION, engines=ALL)
def check_root_providers(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """The upgrade check of this name."""
    return (yield from _judge_data(conn, upgrade_checks.check_root_providers))


@check(upgrade_checks.CONSUMERS, needs=_CONNECTION, engines=ALL)
def check_consumers(_config: cfg.ConfigOpts, conn: sa.Connection) -> Steps:
    """The upgrade check of this name."""
    return (yield from _judge_data(conn, upgrade_checks.check_consumers))


def _judge_data(
    conn: sa.Connection, upgrade_check: Callable[[sa.Connection], upgradecheck.Result]
) -> Steps:
    if not sa.inspect(conn).has_table(models.resource_providers.name):
        raise Skipped('The database has no tables.')
    return (yield from judged(upgrade_check(conn), upgrade_checks.DATA_REMEDY))
