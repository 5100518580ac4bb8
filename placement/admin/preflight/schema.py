"""Checks of the schema revision and of the stored data."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import sqlalchemy as sa

from placement.admin import upgrade_checks
from placement.admin.preflight import database
from placement.admin.preflight.model import Verdict, failure, ok, skipped, warning
from placement.db.sqlalchemy import migration, models

_SYNC = 'Run `placement-manage db sync`.'
GRANT = 'Grant these privileges, or run `placement-manage db sync` as a user that has them.'
_CONVERT = 'Run `oslopolicy-convert-json-to-yaml --namespace placement`.'

UpgradeCheck = Callable[[upgrade_checks.Checks], upgradecheck.Result]


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of the database.

    :param revision: the revision in the database; None if it has no revision
    :param existing: the tables of this release that exist
    :param missing: the tables of this release that do not exist
    """

    revision: str | None
    existing: frozenset[str]
    missing: frozenset[str]


def check_revision(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the schema has the revision of this release."""
    with database.connected(config) as conn:
        schema = read(conn)
        denied = migration.missing_privileges(conn) if is_older(schema) else []
    sync_on_startup = config.placement_database.sync_on_startup
    return [judge_revision(schema, migration.revisions(), sync_on_startup, denied)]


def read(conn: sa.Connection) -> Schema:
    """Read the schema of the database."""
    tables = set(sa.inspect(conn).get_table_names())
    current = migration.read_revision(conn) if migration.REVISION_TABLE in tables else None
    expected = set(models.metadata.tables)
    return Schema(current, frozenset(tables & expected), frozenset(expected - tables))


def is_older(schema: Schema) -> bool:
    """Whether `placement-manage db sync` changes the schema."""
    head, *older = migration.revisions()
    if schema.revision is None:
        return not schema.existing
    return schema.revision != head and schema.revision in older


def judge_revision(
    schema: Schema,
    revisions: Sequence[str],
    sync_on_startup: bool,
    denied: Collection[str] = (),
) -> Verdict:
    """Judge the schema.

    :param revisions: the revisions of this release, newest first
    :param sync_on_startup: the option `[placement_database] sync_on_startup`
    :param denied: the privileges that the user lacks to upgrade an older schema
    """
    head, current = revisions[0], schema.revision
    if current is not None and current not in revisions:
        return warning(
            f'The revision {current} is unknown. It can belong to a newer release.',
            'Check that the URL names the right database, or install the newer release.',
        )
    if current == head:
        return _judge_head(head, schema.missing)
    if current is None and schema.existing:
        return _judge_without_revision(head, schema.missing)
    state = f'The schema is at revision {current or "none"}; this release needs {head}.'
    if denied:
        return failure(f'{state} The user cannot upgrade it; it lacks: {", ".join(denied)}.', GRANT)
    if sync_on_startup:
        return ok(f'{state} The service upgrades the schema when it starts (sync_on_startup).')
    return failure(state, _SYNC)


def _judge_without_revision(head: str, missing: Collection[str]) -> Verdict:
    if missing:
        return failure(
            'The database has no revision and only a part of the tables. Missing: '
            f'{", ".join(sorted(missing))}.',
            'Check that the URL names the right database, or restore it from a backup.',
        )
    # MySQL and MariaDB do not list a table that the account cannot read.
    return warning(
        'All tables exist, but the database has no revision, or the user cannot read it.',
        f'Grant SELECT on {migration.REVISION_TABLE} to the user. If there is no such table and '
        f'the schema is that of revision {head}, run `placement-manage db stamp head`.',
    )


def _judge_head(head: str, missing: Collection[str]) -> Verdict:
    if missing:
        return failure(
            f'The revision is {head}, but these tables do not exist: {", ".join(sorted(missing))}.',
            'Restore the database from a backup.',
        )
    return ok(f'The schema is at revision {head}.')


def check_data(check: UpgradeCheck) -> Callable[[cfg.ConfigOpts], list[Verdict]]:
    """Return a check that runs an upgrade check on the database."""

    def run(config: cfg.ConfigOpts) -> list[Verdict]:
        with database.connected(config) as conn:
            if not sa.inspect(conn).has_table(models.resource_providers.name):
                return [skipped('The database has no tables.')]

            def count(query: sa.Select[Any]) -> int:
                return int(conn.execute(query).scalar_one())

            result = check(upgrade_checks.Checks(config, count))
        return [judge_upgrade(result, upgrade_checks.DATA_REMEDY)]

    return run


def check_policy_format(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the policy file is not in JSON."""
    return [judge_upgrade(upgrade_checks.Checks(config).check_policy_format(), _CONVERT)]


def judge_upgrade(result: upgradecheck.Result, remedy: str) -> Verdict:
    """Convert the result of an upgrade check."""
    details = ' '.join(str(result.details or '').split()).removesuffix(remedy).strip()
    if result.code == upgradecheck.Code.SUCCESS:
        return ok(details or 'The upgrade check succeeds.')
    if result.code == upgradecheck.Code.WARNING:
        return warning(details, remedy)
    return failure(details, remedy)
