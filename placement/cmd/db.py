"""The commands `placement-manage db`, which migrate the database schema and data."""

from collections import Counter
from collections.abc import Sequence
import functools
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import prettytable

from placement import messages
from placement.capacity import MAX_INT
from placement.cmd import program
from placement.conf import database_url
from placement.db.sqlalchemy import migration
from placement.objects import online_data_migrations

LOG = logging.getLogger(__name__)

# The maximum number of rows that online_data_migrations migrates in one batch.
BATCH = 50

# The exit statuses of the command online_data_migrations.
DONE = 0
MORE_TO_DO = 1
FAILED = 2
INVALID_COUNT = 127

_MIGRATE = """Migrate data of older releases while the service runs.

Exit status: 0 all rows are migrated; 1 more rows may remain, so run the command again; 2 a
migration failed; 127 the number of rows is invalid.
"""


def add_commands(commands: Any) -> None:
    """Add the commands to the result of `ArgumentParser.add_subparsers`."""
    text = 'Migrate the schema and the data of the database.'
    actions = program.subcommands(program.add_command(commands, 'placement-manage db', text))
    add = functools.partial(program.add_database_command, actions, creates_database=True)
    add('db sync', _sync, 'Upgrade the schema to the newest revision.')
    add('db version', _version, 'Print the revision of the schema.')
    stamp = add('db stamp', _stamp, 'Set the revision of the schema without a migration.')
    stamp.add_argument('revision', help='a revision of the schema, or `head` for the newest one')
    migrate = add('db online_data_migrations', _online_data_migrations, _MIGRATE)
    migrate.add_argument(
        '--max-count', metavar='N', help='migrate at most N rows; by default, migrate all rows'
    )


def _sync(_config: cfg.ConfigOpts) -> int:
    migration.upgrade('head')
    return 0


def _version(config: cfg.ConfigOpts) -> int:
    file = database_url.file_of(config.placement_database.connection)
    # A connection to SQLite would create the file, if its directory exists.
    is_missing = file is not None and not file.exists() and file.parent.is_dir()
    print(None if is_missing else migration.version())
    return 0


def _stamp(config: cfg.ConfigOpts) -> int:
    migration.stamp(config.category.revision)
    return 0


def _online_data_migrations(config: cfg.ConfigOpts) -> int:
    requested = config.category.max_count
    if requested is None:
        print(f'Running batches of {BATCH} until complete')
        return migrate_data(config, online_data_migrations.MIGRATIONS)
    try:
        max_count = int(requested)
    except ValueError:
        max_count = 0
    if max_count < 1:
        print('--max-count must be an integer greater than 0.')
        return INVALID_COUNT
    return migrate_data(config, online_data_migrations.MIGRATIONS, min(max_count, MAX_INT))


def migrate_data(
    config: cfg.ConfigOpts,
    migrations: Sequence[online_data_migrations.DataMigration],
    max_count: int | None = None,
) -> int:
    """Run data migrations, print their results, and return the exit status of the command.

    :param migrations: the migrations in the order of execution; if a migration fails, the next
        migrations still run
    :param max_count: the maximum number of rows to migrate; by default, all rows in batches of
        `BATCH`
    """
    found: Counter[str] = Counter()
    done: Counter[str] = Counter()
    status = DONE
    while True:
        left = limit = max_count or BATCH
        for migrate in migrations:
            outcome = _migrate(config, migrate, left)
            if outcome is None:
                status, outcome = FAILED, online_data_migrations.Outcome(0, 0)
            found[migrate.__name__] += outcome.matched
            done[migrate.__name__] += outcome.migrated
            left -= outcome.migrated
            if left <= 0:
                break
        if max_count is not None or left == limit:
            break
    table = prettytable.PrettyTable(['Migration', 'Total Found', 'Completed'])
    table.add_rows([[name, found[name], done[name]] for name in found])
    print(table)
    return MORE_TO_DO if max_count is not None and left < limit else status


def _migrate(
    config: cfg.ConfigOpts, migrate: online_data_migrations.DataMigration, max_count: int
) -> online_data_migrations.Outcome | None:
    """Run a migration, print its result, and return it; None if the migration failed."""
    name = migrate.__name__
    try:
        outcome = migrate(config, max_count)
    except Exception as error:
        reason = messages.sentence(error)
        LOG.error(  # noqa: TRY400 - only --debug logs the traceback
            'Error attempting to run %s: %s', name, reason, exc_info=config.debug
        )
        print(f'Error attempting to run {name}: {reason}')
        return None
    if outcome.matched:
        print(f'{outcome.matched} rows matched query {name}, {outcome.migrated} migrated')
    return outcome
