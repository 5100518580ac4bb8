"""The command `placement-status`, which checks whether an upgrade is possible."""

import argparse
import sys
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
import sqlalchemy as sa

from placement.cmd import program
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

# The exit status if a check cannot run. Smaller values are the results of the checks.
ERROR = 255

_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


class Checks(upgradecheck.UpgradeCommands):
    """The upgrade checks, in the order of the report.

    The checks also support the database schema of the previous release.

    :param config: the configuration that names the policy file to check
    """

    def __init__(self, config: cfg.ConfigOpts) -> None:
        policy_check = (common_checks.check_policy_json, {'conf': config})
        self._upgrade_checks = (
            ('Missing Root Provider IDs', Checks._check_root_provider_ids),
            ('Incomplete Consumers', Checks._check_incomplete_consumers),
            ('Policy File JSON to YAML Migration', policy_check),
        )

    def _check_root_provider_ids(self) -> upgradecheck.Result:
        """Check for providers without a root provider, which the API does not return."""
        providers = models.resource_providers
        query = sa.select(sa.func.count()).where(providers.c.root_provider_id.is_(None))
        count = _scalar(query)
        if count == 0:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        return upgradecheck.Result(
            upgradecheck.Code.FAILURE,
            f'Resource providers without a root provider id: {count}. {_REMEDY}',
        )

    def _check_incomplete_consumers(self) -> upgradecheck.Result:
        """Check for allocations without a consumer, which count as usage but are not returned."""
        count = _scalar(
            online_data_migrations.select_without_consumer(
                sa.func.count(models.allocations.c.consumer_id.distinct())
            )
        )
        if count == 0:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        return upgradecheck.Result(
            upgradecheck.Code.WARNING,
            f'Missing consumers that have allocations: {count}. {_REMEDY}',
        )


def _scalar(query: sa.Select[int]) -> int:
    with db_engine.reader() as conn:
        count: int = conn.execute(query).scalar_one()
        return count


def main() -> int:
    """Execute the command that `sys.argv` names and return its exit status."""
    return program.main(
        program.Program(
            name='placement-status',
            description='Check whether an upgrade is possible. The command changes nothing.',
            exit_statuses='  0    all checks succeeded\n'
            '  1    at least one check printed a warning, and none failed\n'
            '  2    at least one check failed, or the command line is not valid\n'
            '  255  a check could not run, or the configuration is not valid\n',
            destination='command',
            add_commands=_add_commands,
            failed=ERROR,
        )
    )


def _add_commands(commands: Any) -> None:
    upgrade = commands.add_parser('upgrade', description='Commands for an upgrade.')
    _add_json_option(upgrade, default=False)
    text = 'Check the stored data and the policy file before an upgrade.'
    subcommands = program.subcommands(upgrade, required=True)
    check = subcommands.add_parser('check', help=text, description=text)
    # The option is accepted before and after `check`.
    _add_json_option(check, default=argparse.SUPPRESS)
    check.set_defaults(action=_upgrade_check, help_only=False)


def _add_json_option(parser: argparse.ArgumentParser, default: bool | str) -> None:
    parser.add_argument(
        '--json', action='store_true', default=default, help='print JSON instead of a table'
    )


def _upgrade_check(config: cfg.ConfigOpts) -> int:
    db_engine.configure(config)
    # oslo.upgradecheck reads the option --json from this module variable.
    upgradecheck.CONF = config
    return int(Checks(config).check())


if __name__ == '__main__':
    sys.exit(main())
