"""The checks of `placement-status upgrade check`, which `placement-status preflight` runs too."""

from collections.abc import Callable

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
import sqlalchemy as sa

from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

ROOT_PROVIDERS = 'Missing Root Provider IDs'
CONSUMERS = 'Incomplete Consumers'
POLICY_FORMAT = 'Policy File JSON to YAML Migration'

DATA_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'

Count = Callable[[sa.Select[int]], int]


def count_with_engine(query: sa.Select[int]) -> int:
    """Execute a query on the database of this process and return the number."""
    with db_engine.snapshot() as conn:
        count: int = conn.execute(query).scalar_one()
        return count


class Checks(upgradecheck.UpgradeCommands):
    """The upgrade checks, in the order of the report.

    The checks also support the database schema of the previous release.

    :param config: the configuration that names the policy file to check
    :param count: executes a query and returns the number
    """

    def __init__(self, config: cfg.ConfigOpts, count: Count = count_with_engine) -> None:
        self._config = config
        self._count = count
        self._upgrade_checks = (
            (ROOT_PROVIDERS, Checks.check_root_provider_ids),
            (CONSUMERS, Checks.check_incomplete_consumers),
            (POLICY_FORMAT, Checks.check_policy_format),
        )

    def check_root_provider_ids(self) -> upgradecheck.Result:
        """Check for providers without a root provider, which the API does not return."""
        providers = models.resource_providers
        query = sa.select(sa.func.count()).where(providers.c.root_provider_id.is_(None))
        count = self._count(query)
        if count == 0:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        return upgradecheck.Result(
            upgradecheck.Code.FAILURE,
            f'Resource providers without a root provider id: {count}. {DATA_REMEDY}',
        )

    def check_incomplete_consumers(self) -> upgradecheck.Result:
        """Check for allocations without a consumer, which count as usage but are not returned."""
        count = self._count(
            online_data_migrations.select_without_consumer(
                sa.func.count(models.allocations.c.consumer_id.distinct())
            )
        )
        if count == 0:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        return upgradecheck.Result(
            upgradecheck.Code.WARNING,
            f'Missing consumers that have allocations: {count}. {DATA_REMEDY}',
        )

    def check_policy_format(self) -> upgradecheck.Result:
        """Check that the policy file is not in JSON."""
        return common_checks.check_policy_json(self, self._config)
