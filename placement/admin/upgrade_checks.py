"""The checks of `placement-status upgrade check`, which `placement-status preflight` runs too."""

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result
import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

ROOT_PROVIDERS = 'Missing Root Provider IDs'
CONSUMERS = 'Incomplete Consumers'
POLICY_FORMAT = 'Policy File JSON to YAML Migration'

DATA_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


class Checks(upgradecheck.UpgradeCommands):
    """The upgrade checks, in the order of the report.

    The checks also support the database schema of the previous release.

    :param config: the configuration that names the policy file to check
    :param conn: a connection to the database of this process
    """

    def __init__(self, config: cfg.ConfigOpts, conn: sa.Connection) -> None:
        self._upgrade_checks = (
            (ROOT_PROVIDERS, lambda _: check_root_providers(conn)),
            (CONSUMERS, lambda _: check_consumers(conn)),
            (POLICY_FORMAT, lambda _: check_policy_format(config)),
        )


def check_root_providers(conn: sa.Connection) -> Result:
    """Check for providers without a root provider, which the API does not return."""
    providers = models.resource_providers
    query = sa.select(sa.func.count()).where(providers.c.root_provider_id.is_(None))
    if not (count := conn.scalar(query)):
        return Result(Code.SUCCESS)
    text = f'Resource providers without a root provider id: {count}. {DATA_REMEDY}'
    return Result(Code.FAILURE, text)


def check_consumers(conn: sa.Connection) -> Result:
    """Check for allocations without a consumer, which count as usage but are not returned."""
    consumers = sa.func.count(models.allocations.c.consumer_id.distinct())
    if not (count := conn.scalar(online_data_migrations.select_without_consumer(consumers))):
        return Result(Code.SUCCESS)
    text = f'Missing consumers that have allocations: {count}. {DATA_REMEDY}'
    return Result(Code.WARNING, text)


def check_policy_format(config: cfg.ConfigOpts) -> Result:
    """Check that the policy file is not in JSON."""
    return common_checks.check_policy_json(upgradecheck.UpgradeCommands(), config)
