"""The command `placement-status`, which checks whether an upgrade is possible."""

import sys

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
import sqlalchemy as sa

from placement import conf
from placement.cmd import messages
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
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    upgradecheck.register_cli_options(config, Checks(config))
    try:
        config(sys.argv[1:], project='placement')
    except cfg.RequiredOptError as error:
        return _report(messages.missing_option(error, config))
    except cfg.Error as error:
        return _report(messages.sentence(error))
    # oslo.upgradecheck reads the option --json from this module variable.
    upgradecheck.CONF = config
    return messages.run(lambda: _execute(config), config, _report)


def _execute(config: cfg.ConfigOpts) -> int:
    db_engine.configure(config)
    status: int = config.command.action_fn()
    return status


def _report(message: str) -> int:
    print(f'Error: {message}')
    return ERROR


if __name__ == '__main__':
    sys.exit(main())
