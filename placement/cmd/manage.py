"""The command `placement-manage`: the database schema, and data to be migrated."""

import argparse
from collections.abc import Callable, Sequence
import functools
import logging as std_logging
import sys
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import prettytable

from placement import conf, db_api, version
from placement.db.sqlalchemy import migration
from placement.objects import repair

LOG = logging.getLogger(__name__)

BATCH = 50

# Exit statuses of online_data_migrations.
DONE = 0
MORE_TO_DO = 1
FAILED = 2
INVALID_COUNT = 127

Action = Callable[[cfg.ConfigOpts], int]


def main() -> int:
    """Run the command line of the process and give its exit status."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config.register_cli_opt(
        cfg.SubCommandOpt('category', title='Command', help='What to work on', handler=_add_db)
    )
    try:
        config(sys.argv[1:], project='placement', version=version.version_string())
    except cfg.RequiredOptError:
        # Asking for help takes no database.
        if getattr(config.category, 'help_only', False):
            return config.category.action(config)
        raise
    action: Action = config.category.action
    if not config.category.help_only:
        # The standard output is for what was asked for.
        config.set_default('use_stderr', True)
        logging.setup(config, 'placement')
        std_logging.captureWarnings(True)
        db_api.configure(config)
    return action(config)


def _add_db(categories: Any) -> None:
    db = categories.add_parser('db', help='The database', description='Work on the database.')
    db.set_defaults(action=functools.partial(_help, db), help_only=True)
    actions = db.add_subparsers(title='actions', metavar='ACTION')

    sync = actions.add_parser(
        'sync', help='migrate the schema', description='Migrate the schema to the newest version.'
    )
    sync.set_defaults(action=_sync, help_only=False)

    show = actions.add_parser(
        'version', help='show the version', description='Show the version of the schema.'
    )
    show.set_defaults(action=_version, help_only=False)

    stamp = actions.add_parser(
        'stamp',
        help='write down a version',
        description='Write down a version of the schema without migrating anything.',
    )
    stamp.add_argument('revision', help='a version of the schema, or `head` for the newest')
    stamp.set_defaults(action=_stamp, help_only=False)

    migrate = actions.add_parser(
        'online_data_migrations',
        help='migrate data',
        description='Migrate data that older releases left. The service may be running.',
        epilog='Exit status: 0 nothing more to do; 1 more may be left, run it again; 2 a '
        'migration failed; 127 the number of rows is not valid.',
    )
    migrate.add_argument(
        '--max-count', metavar='N', help='stop after N rows; without it go on until all are done'
    )
    migrate.set_defaults(action=_online_data_migrations, help_only=False)


def _help(parser: argparse.ArgumentParser, config: cfg.ConfigOpts) -> int:
    parser.print_help()
    return 0


def _sync(config: cfg.ConfigOpts) -> int:
    migration.upgrade('head')
    return 0


def _version(config: cfg.ConfigOpts) -> int:
    print(migration.version())
    return 0


def _stamp(config: cfg.ConfigOpts) -> int:
    migration.stamp(config.category.revision)
    return 0


def _online_data_migrations(config: cfg.ConfigOpts) -> int:
    given = config.category.max_count
    if given is None:
        print(f'Running batches of {BATCH} until complete')
        return migrate_data(config, repair.REPAIRS)
    try:
        max_count = int(given)
    except ValueError:
        max_count = 0
    if max_count < 1:
        print('--max-count takes a number of rows, 1 or more')
        return INVALID_COUNT
    return migrate_data(config, repair.REPAIRS, max_count)


def migrate_data(
    config: cfg.ConfigOpts, repairs: Sequence[repair.Repair], max_count: int | None = None
) -> int:
    """Run data migrations, print what they did, and give the exit status.

    :param repairs: what to run, in this order; one that fails does not stop the others
    :param max_count: how many rows to migrate at most; all of them, batch by batch, if None
    """
    totals: dict[str, repair.Outcome] = {}
    failed = False
    migrated = 0
    while True:
        done, failed_now = _round(config, repairs, max_count or BATCH, totals)
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


def _round(
    config: cfg.ConfigOpts,
    repairs: Sequence[repair.Repair],
    max_count: int,
    totals: dict[str, repair.Outcome],
) -> tuple[int, bool]:
    """Migrate at most `max_count` rows; give how many it were and whether anything failed."""
    migrated = 0
    failed = False
    for migrate in repairs:
        name = migrate.__name__
        before = totals.get(name, repair.Outcome(0, 0))
        try:
            outcome = migrate(config, max_count - migrated)
        except Exception as error:
            LOG.exception('Error attempting to run %s', name)
            print(f'Error attempting to run {name}: {error}')
            totals[name] = before
            failed = True
            continue
        if outcome.matched:
            print(f'{outcome.matched} rows matched query {name}, {outcome.migrated} migrated')
        totals[name] = repair.Outcome(
            before.matched + outcome.matched, before.migrated + outcome.migrated
        )
        migrated += outcome.migrated
        if migrated >= max_count:
            break
    return migrated, failed


def _print_table(totals: dict[str, repair.Outcome]) -> None:
    table = prettytable.PrettyTable(['Migration', 'Total Found', 'Completed'])
    for name, outcome in totals.items():
        table.add_row([name, outcome.matched, outcome.migrated])
    print(table)


if __name__ == '__main__':
    sys.exit(main())
