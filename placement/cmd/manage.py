"""The command `placement-manage`, which migrates the database schema and data."""

import argparse
from collections.abc import Callable, Sequence
import functools
import logging as std_logging
import sys
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import prettytable

from placement import conf, version
from placement.cmd import messages
from placement.db import engine as db_engine
from placement.db.sqlalchemy import migration
from placement.objects import online_data_migrations

LOG = logging.getLogger(__name__)

# The maximum number of rows that online_data_migrations migrates in one batch.
BATCH = 50

# The exit status if a command fails.
ERROR = 1

# The exit statuses of the command online_data_migrations.
DONE = 0
MORE_TO_DO = 1
FAILED = 2
INVALID_COUNT = 127

Action = Callable[[cfg.ConfigOpts], int]


def main() -> int:
    """Execute the command that `sys.argv` names and return its exit status."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config.register_cli_opt(
        cfg.SubCommandOpt('category', title='Command', help='The object to manage', handler=_add_db)
    )
    try:
        config(sys.argv[1:], project='placement', version=version.version_string())
    except cfg.RequiredOptError as error:
        # The help output does not require the option `[placement_database] connection`.
        if not getattr(config.category, 'help_only', False):
            return _report(messages.missing_option(error, config))
    except cfg.Error as error:
        return _report(messages.sentence(error))
    return messages.run(lambda: _execute(config), config, _report)


def _execute(config: cfg.ConfigOpts) -> int:
    action: Action = config.category.action
    if not config.category.help_only:
        # Log to standard error, so that standard output contains only the result of the action.
        config.set_default('use_stderr', True)
        logging.setup(config, 'placement')
        std_logging.captureWarnings(True)
        db_engine.configure(config)
    return action(config)


def _report(message: str) -> int:
    print(f'Error: {message}', file=sys.stderr)
    return ERROR


def _add_db(categories: Any) -> None:
    db = categories.add_parser(
        'db',
        help='manage the database',
        description='Migrate the schema and the data of the database.',
    )
    db.set_defaults(action=functools.partial(_help, db), help_only=True)
    actions = db.add_subparsers(title='actions', metavar='ACTION')

    sync = actions.add_parser(
        'sync', help='upgrade the schema', description='Upgrade the schema to the newest version.'
    )
    sync.set_defaults(action=_sync, help_only=False)

    show = actions.add_parser(
        'version', help='show the version', description='Show the version of the schema.'
    )
    show.set_defaults(action=_version, help_only=False)

    stamp = actions.add_parser(
        'stamp',
        help='set the version without a migration',
        description='Set the version of the schema without running a migration.',
    )
    stamp.add_argument('revision', help='a version of the schema, or `head` for the newest one')
    stamp.set_defaults(action=_stamp, help_only=False)

    migrate = actions.add_parser(
        'online_data_migrations',
        help='migrate data',
        description='Migrate data of older releases. The service can run at the same time.',
        epilog='Exit status: 0 all rows are migrated; 1 more rows may remain, so run the command '
        'again; 2 a migration failed; 127 the number of rows is invalid.',
    )
    migrate.add_argument(
        '--max-count', metavar='N', help='migrate at most N rows; by default, migrate all rows'
    )
    migrate.set_defaults(action=_online_data_migrations, help_only=False)


def _help(parser: argparse.ArgumentParser, _config: cfg.ConfigOpts) -> int:
    parser.print_help()
    return 0


def _sync(_config: cfg.ConfigOpts) -> int:
    migration.upgrade('head')
    return 0


def _version(_config: cfg.ConfigOpts) -> int:
    print(migration.version())
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
    return migrate_data(config, online_data_migrations.MIGRATIONS, max_count)


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
    totals: dict[str, online_data_migrations.Outcome] = {}
    failed = False
    migrated = 0
    while True:
        done, failed_now = _run_batch(config, migrations, max_count or BATCH, totals)
        migrated += done
        failed = failed or failed_now
        if max_count is not None or done == 0:
            break
    _print_table(totals)
    if max_count is None:
        return FAILED if failed else DONE
    if migrated:
        return MORE_TO_DO
    return FAILED if failed else DONE


def _run_batch(
    config: cfg.ConfigOpts,
    migrations: Sequence[online_data_migrations.DataMigration],
    max_count: int,
    totals: dict[str, online_data_migrations.Outcome],
) -> tuple[int, bool]:
    """Migrate up to `max_count` rows; return their number and whether a migration failed."""
    migrated = 0
    failed = False
    for migrate in migrations:
        name = migrate.__name__
        before = totals.get(name, online_data_migrations.Outcome(0, 0))
        try:
            outcome = migrate(config, max_count - migrated)
        except Exception as error:
            LOG.exception('Error attempting to run %s', name)
            print(f'Error attempting to run {name}: {messages.sentence(error)}')
            totals[name] = before
            failed = True
            continue
        if outcome.matched:
            print(f'{outcome.matched} rows matched query {name}, {outcome.migrated} migrated')
        totals[name] = online_data_migrations.Outcome(
            before.matched + outcome.matched, before.migrated + outcome.migrated
        )
        migrated += outcome.migrated
        if migrated >= max_count:
            break
    return migrated, failed


def _print_table(totals: dict[str, online_data_migrations.Outcome]) -> None:
    table = prettytable.PrettyTable(['Migration', 'Total Found', 'Completed'])
    for name, outcome in totals.items():
        table.add_row([name, outcome.matched, outcome.migrated])
    print(table)


if __name__ == '__main__':
    sys.exit(main())
