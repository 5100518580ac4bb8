"""A fixture that sets the policy of a test."""

from collections.abc import Mapping
import copy

import fixtures
from oslo_config import fixture as config_fixture
from oslo_policy import policy as oslo_policy

from placement import policies, policy


class PolicyFixture(fixtures.Fixture):
    """Creates an enforcer with the default rules.

    A policy file below the state path can override the rules.
    """

    def __init__(self, conf_fixture: config_fixture.Config):
        super().__init__()
        self.conf_fixture = conf_fixture

    def setUp(self) -> None:
        super().setUp()
        state_path = self.conf_fixture.conf.state_path
        self.conf_fixture.config(
            group='oslo_policy', policy_file=f'{state_path}/etc/placement/policy.yaml'
        )
        # The cleanup restores the enforcer that existed before this fixture.
        self.useFixture(fixtures.MonkeyPatch('placement.policy._policy', None))
        policy.init(
            self.conf_fixture.conf,
            suppress_deprecation_warnings=True,
            rules=copy.deepcopy(policies.list_rules()),
        )

    @staticmethod
    def set_rules(rules: Mapping[str, str], overwrite: bool = True) -> None:
        """Enforce the given rules.

        :param rules: name of each rule -> check string
        :param overwrite: remove the current rules first; otherwise, add the given rules to them
        """
        policy.set_rules(oslo_policy.Rules.from_dict(dict(rules)), overwrite=overwrite)
