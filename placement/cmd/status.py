"""The command `placement-status`: is this deployment ready for an upgrade?"""

import sys

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
import sqlalchemy as sa

from placement import conf, db_api
from placement.db.sqlalchemy import models
from placement.objects import repair

_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


class Checks(upgradecheck.UpgradeCommands):
    """The checks, in the order of their report. Each may read data of the previous release."""

    def _check_root_provider_ids(self) -> upgradecheck.Result:
        """Providers without a root are invisible to the API."""
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
        """Allocations without a record of their consumer count as used and are never listed."""
        count = _scalar(
            repair.select_without_consumer(
                sa.func.count(models.allocations.c.consumer_id.distinct())
            )
        )
        if count == 0:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        return upgradecheck.Result(
            upgradecheck.Code.WARNING,
            f'Consumers that have allocations and no record: {count}. {_REMEDY}',
        )

    _upgrade_checks = (
        ('Missing Root Provider IDs', _check_root_provider_ids),
        ('Incomplete Consumers', _check_incomplete_consumers),
    )


def _scalar(query: sa.Select) -> int:
    with db_api.reader() as conn:
        return conn.execute(query).scalar_one()


def main() -> int:
    """Run the command line of the process and give its exit status."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    checks = Checks()
    checks._upgrade_checks = (  # type: ignore[assignment]
        *Checks._upgrade_checks,
        ('Policy File JSON to YAML Migration', (common_checks.check_policy_json, {'conf': config})),
    )
    upgradecheck.register_cli_options(config, checks)
    config(sys.argv[1:], project='placement')
    # The library looks here for --json.
    upgradecheck.CONF = config
    db_api.configure(config)
    return upgradecheck.run(config)


if __name__ == '__main__':
    sys.exit(main())
