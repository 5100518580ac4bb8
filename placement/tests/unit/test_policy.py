"""The default policy, and the life cycle of the enforcer."""

import logging
import os
import pathlib
from typing import Any
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_context import context
from oslo_policy import policy as oslo_policy
from oslotest import base

from placement import conf, exception, permissions, policies, policy, policy_remote
from placement.tests.unit import policy_fixture

PROJECT = 'the-project'
RESHAPE = 'placement:reshaper:reshape'
USAGES = 'placement:usages'
# Rules to which other rules refer.
PARTS = {
    'admin_api',
    'service_api',
    'admin_or_service_api',
    'project_reader_api',
    'admin_or_project_reader_or_service_api',
}
ROUTES = {rule.name for rule in policies.list_rules()} - PARTS


class PolicyTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.policy_file = self.directory / 'policy.yaml'
        policy.reset()
        self.addCleanup(policy.reset)

    def configure(self, **options: Any) -> cfg.ConfigOpts:
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_override('connection', 'sqlite://', group='placement_database')
        config.set_override('policy_file', str(self.policy_file), group='oslo_policy')
        for name, value in options.items():
            config.set_override(name, value, group='oslo_policy')
        config([], default_config_files=[])
        return config

    def change_file(self, text: str) -> None:
        # oslo.policy compares modification times, in seconds.
        before = self.policy_file.stat()
        self.policy_file.write_text(text)
        os.utime(self.policy_file, (before.st_atime, before.st_mtime + 5))

    def allowed(self, target_project: str = PROJECT, **identity: Any) -> set[str]:
        """Return the rules of API operations that the caller may perform."""
        caller = context.RequestContext(**{'user_id': 'user', 'project_id': PROJECT, **identity})
        target = {'project_id': target_project, 'user_id': 'user'}
        return {rule for rule in ROUTES if policy.authorize(caller, rule, target, do_raise=False)}


class DefaultsTest(PolicyTestCase):
    def setUp(self):
        super().setUp()
        policy.init(self.configure())

    def test_an_admin_may_do_everything_but_reshape(self):
        self.assertEqual(ROUTES - {RESHAPE}, self.allowed(roles=['admin']))

    def test_a_service_may_do_everything(self):
        self.assertEqual(ROUTES, self.allowed(roles=['service']))

    def test_a_reader_may_see_the_usages_of_its_project(self):
        self.assertEqual({USAGES}, self.allowed(roles=['reader']))
        self.assertEqual(set(), self.allowed(roles=['reader'], target_project='another'))

    def test_a_member_may_do_nothing(self):
        self.assertEqual(set(), self.allowed(roles=['member']))

    def test_roles_are_matched_without_regard_to_case(self):
        self.assertEqual(ROUTES - {RESHAPE}, self.allowed(roles=['Admin']))

    def test_tokens_of_another_scope_are_rejected(self):
        for roles in (['admin'], ['service']):
            self.assertEqual(set(), self.allowed(roles=roles, system_scope='all'))
            self.assertEqual(set(), self.allowed(roles=roles, project_id=None, domain_id='domain'))

    def test_the_error_names_the_rule(self):
        for identity in ({'roles': ['member']}, {'roles': ['admin'], 'system_scope': 'all'}):
            caller = context.RequestContext(user_id='user', project_id=PROJECT, **identity)
            error = self.assertRaises(
                exception.PolicyNotAuthorized, policy.authorize, caller, USAGES, {}
            )
            self.assertIn(USAGES, str(error))

    def test_an_unknown_rule_raises(self):
        caller = context.RequestContext(roles=['admin'])
        self.assertRaises(
            oslo_policy.PolicyNotRegistered, policy.authorize, caller, 'placement:nothing', {}
        )


class LegacyDefaultsTest(PolicyTestCase):
    def setUp(self):
        super().setUp()
        policy.init(self.configure(enforce_new_defaults=False))

    def test_an_admin_may_do_everything(self):
        self.assertEqual(ROUTES, self.allowed(roles=['admin']))

    def test_other_roles_as_with_the_new_defaults(self):
        self.assertEqual(ROUTES, self.allowed(roles=['service']))
        self.assertEqual({USAGES}, self.allowed(roles=['reader']))
        self.assertEqual(set(), self.allowed(roles=['member']))


class RulesTest(base.BaseTestCase):
    def test_the_number_of_rules(self):
        self.assertEqual(5, len(PARTS))
        self.assertEqual(33, len(ROUTES))

    def test_all_but_one_have_project_scope(self):
        scopes = {rule.name: rule.scope_types for rule in policies.list_rules()}

        self.assertIsNone(scopes.pop('project_reader_api'))
        self.assertEqual([['project']], [list(s) for s in {tuple(s) for s in scopes.values()}])

    def test_check_strings(self):
        checks = {rule.name: rule.check_str for rule in policies.list_rules()}
        for name, check in {
            'admin_api': 'role:admin',
            'service_api': 'role:service',
            'admin_or_service_api': 'role:admin or role:service',
            'project_reader_api': 'role:reader and project_id:%(project_id)s',
            'admin_or_project_reader_or_service_api': (
                'role:admin or rule:project_reader_api or role:service'
            ),
            USAGES: 'rule:admin_or_project_reader_or_service_api',
            RESHAPE: 'rule:service_api',
        }.items():
            self.assertEqual(check, checks.pop(name))
        self.assertEqual({'rule:admin_or_service_api'}, set(checks.values()))

    def test_each_operation_has_one_rule(self):
        operations = [
            (operation['method'], operation['path'])
            for rule in policies.list_rules()
            if rule.name in ROUTES
            for operation in rule.operations
        ]
        self.assertEqual(len(operations), len(set(operations)))
        self.assertEqual(35, len(operations))


class EnforcerTest(PolicyTestCase):
    def test_init_has_no_effect_until_reset(self):
        self.policy_file.write_text('"placement:traits:list": "role:reader"\n')
        policy.init(self.configure())
        self.assertIn('placement:traits:list', self.allowed(roles=['reader']))

        policy.init(self.configure(policy_file=str(self.directory / 'none.yaml')))
        self.assertIn('placement:traits:list', self.allowed(roles=['reader']))

        policy.reset()
        policy.init(self.configure(policy_file=str(self.directory / 'none.yaml')))
        self.assertNotIn('placement:traits:list', self.allowed(roles=['reader']))

    def test_the_file_is_read_again_when_it_changes(self):
        self.useFixture(fixtures.MockPatchObject(permissions, 'REMEMBERED_SECONDS', 0.0))
        self.policy_file.write_text('{}\n')
        policy.init(self.configure())
        self.assertEqual(set(), self.allowed(roles=['member']))

        self.change_file('"placement:traits:show": "role:member"\n')
        self.assertEqual({'placement:traits:show'}, self.allowed(roles=['member']))

    def test_the_tools_of_oslo_policy_parse_the_default_files_of_the_service(self):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_default('connection', 'sqlite://', 'placement_database')
        self.policy_file.write_text('"placement:traits:list": "role:reader"\n')
        file = self.directory / 'placement.conf'
        file.write_text(f'[oslo_policy]\npolicy_file = {self.policy_file}\n')
        with (
            mock.patch.object(cfg, 'CONF', config),
            mock.patch.object(cfg, 'find_config_files', return_value=[str(file)]) as find,
        ):
            policy.get_enforcer()

        self.assertEqual('placement', find.call_args.args[0])
        self.assertIn('placement:traits:list', self.allowed(roles=['reader']))

    def test_configuration_files_of_the_command_line_are_not_replaced(self):
        file = self.directory / 'other.conf'
        file.write_text('')
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_default('connection', 'sqlite://', 'placement_database')
        config(['--config-file', str(file)])
        with mock.patch.object(cfg, 'CONF', config):
            policy.get_enforcer()
        self.assertEqual([str(file)], config.config_file)

    def test_given_rules_replace_the_defaults(self):
        policy.init(self.configure(), rules=[oslo_policy.RuleDefault('placement:traits:list', '@')])
        caller = context.RequestContext(roles=[])
        self.assertTrue(policy.authorize(caller, 'placement:traits:list', {}))
        self.assertRaises(
            oslo_policy.PolicyNotRegistered, policy.authorize, caller, 'placement:traits:show', {}
        )


class RememberedPermissionsTest(PolicyTestCase):
    """Permissions are remembered for a second; nobody receives the permission of another caller."""

    LIST = 'placement:traits:list'
    ADMIN = {'user_id': 'user', 'project_id': PROJECT, 'roles': ['admin']}

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('oslo_policy.policy', logging.INFO))
        self.clock = mock.Mock(**{'monotonic.return_value': 1000.0})
        self.useFixture(fixtures.MonkeyPatch('placement.permissions.time', self.clock))
        self.policy_file.write_text(f'"{self.LIST}": "role:admin"\n')
        policy.init(self.configure())

    def is_allowed(
        self, rule: str = LIST, target: dict[str, Any] | None = None, **identity: Any
    ) -> bool:
        caller = context.RequestContext(**{**self.ADMIN, **identity})
        return policy.authorize(caller, rule, target or {}, do_raise=False)

    def evaluations(self, **arguments: Any) -> int:
        """Return how often two identical requests evaluate the rule."""
        wrapped = oslo_policy.Enforcer.authorize
        with mock.patch.object(oslo_policy.Enforcer, 'authorize', autospec=True) as authorize:
            authorize.side_effect = wrapped
            self.is_allowed(**arguments)
            self.is_allowed(**arguments)
        return authorize.call_count

    def deny(self) -> None:
        self.change_file(f'"{self.LIST}": "!"\n')

    def test_a_changed_file_takes_effect_after_a_second(self):
        self.assertTrue(self.is_allowed())
        self.deny()

        self.clock.monotonic.return_value += 0.75
        self.assertTrue(self.is_allowed())
        self.clock.monotonic.return_value += 0.25
        self.assertFalse(self.is_allowed())

    def test_requests_do_not_prolong_the_second(self):
        self.assertTrue(self.is_allowed())
        self.deny()
        for _ in range(2):
            self.clock.monotonic.return_value += 0.5
            allowed = self.is_allowed()

        self.assertFalse(allowed)

    def test_a_changed_file_permits_what_was_refused_after_a_second(self):
        self.assertFalse(self.is_allowed(roles=['member']))
        self.change_file(f'"{self.LIST}": "role:member"\n')

        self.assertFalse(self.is_allowed(roles=['member']))
        self.clock.monotonic.return_value += 1
        self.assertTrue(self.is_allowed(roles=['member']))

    def test_refusals_are_not_remembered(self):
        self.assertEqual(2, self.evaluations(roles=['member']))

    def test_each_part_of_the_identity_counts(self):
        self.assertTrue(self.is_allowed())
        self.assertFalse(self.is_allowed(roles=['member']))
        self.assertFalse(self.is_allowed(roles=[]))
        self.assertFalse(self.is_allowed(system_scope='all'))
        self.assertFalse(self.is_allowed(project_id=None, domain_id='domain'))

    def test_each_attribute_that_the_rule_uses_counts(self):
        scope = {'system_scope', 'domain_id'}
        for name in set(context.RequestContext().to_policy_values()) - scope:
            with self.subTest(name=name):
                expression = 'role:x or service_roles:x' if 'roles' in name else f'{name}:x'
                policy.set_rules(oslo_policy.Rules.from_dict({self.LIST: expression}))
                value = ['x'] if 'roles' in name else 'x'
                nobody = dict.fromkeys(['user_id', 'project_id', 'roles'])

                self.assertTrue(self.is_allowed(**{**nobody, name: value}), name)
                self.assertFalse(self.is_allowed(**{**nobody, name: None}), name)

    def test_attributes_that_the_rule_does_not_use_do_not_count(self):
        with mock.patch.object(policy._enforcer, 'authorize', return_value=True) as authorize:
            for user in ('one', 'another'):
                self.assertTrue(self.is_allowed(user_id=user, target={'project_id': user}))

        authorize.assert_called_once()

    def test_if_the_rule_has_an_unknown_condition_all_attributes_count(self):
        check = mock.Mock(spec=policy_remote.RemoteCheck, side_effect=lambda *_: True)
        policy._enforcer.rules[self.LIST] = check
        for _ in range(2):
            self.assertTrue(self.is_allowed())
            self.assertTrue(self.is_allowed(user_id='another'))
            self.assertTrue(self.is_allowed(target={'project_id': 'another'}))

        self.assertEqual(3, check.call_count)

    def test_attributes_of_rules_that_the_rule_refers_to_count(self):
        rules = {self.LIST: '@ and rule:a', 'a': 'not (rule:b or rule:a)', 'b': 'user_id:x'}
        policy.set_rules(oslo_policy.Rules.from_dict(rules))
        attributes = permissions.decisive_attributes(policy._enforcer, self.LIST)

        caller = context.RequestContext(user_id='x', project_id='y', system_scope='all')
        self.assertEqual((None, 'all', 'x'), attributes.of_caller(caller))
        self.assertFalse(attributes.of_target)

    def test_the_context_of_the_request_stays_the_current_one(self):
        caller = context.RequestContext(**self.ADMIN)
        policy.authorize(caller, self.LIST, {})

        self.assertIs(caller, context.get_current())

    def test_an_unknown_rule_is_the_default_rule(self):
        rules = oslo_policy.Rules.from_dict({self.LIST: 'rule:a', 'default': 'project_id:x'})
        policy.set_rules(rules)
        attributes = permissions.decisive_attributes(policy._enforcer, self.LIST)

        self.assertEqual(
            (None, 'x', None), attributes.of_caller(context.RequestContext(project_id='x'))
        )

    def test_the_project_and_the_target_count(self):
        reader = {'rule': USAGES, 'roles': ['reader']}
        own, another = {'project_id': PROJECT}, {'project_id': 'another'}

        self.assertTrue(self.is_allowed(**reader, target=own))
        self.assertFalse(self.is_allowed(**reader, target=another))
        self.assertFalse(self.is_allowed(**reader, target=own, project_id='another'))
        self.assertTrue(self.is_allowed(**reader, target=another, project_id='another'))

    def test_the_rule_counts(self):
        self.assertTrue(self.is_allowed())
        self.assertFalse(self.is_allowed(rule=RESHAPE))

    def test_rules_that_a_program_sets_take_effect_at_once(self):
        self.assertTrue(self.is_allowed())
        policy.set_rules(oslo_policy.Rules.from_dict({self.LIST: '!'}))

        self.assertFalse(self.is_allowed())

    def test_a_new_enforcer_takes_effect_at_once(self):
        self.assertTrue(self.is_allowed())
        self.deny()
        policy.reset()
        policy.init(self.configure())

        self.assertFalse(self.is_allowed())

    def test_a_replaced_enforcer_takes_effect_at_once(self):
        self.assertTrue(self.is_allowed())
        rules = [oslo_policy.RuleDefault(self.LIST, '!')]
        other = oslo_policy.Enforcer(self.configure(policy_file='none.yaml'))
        other.register_defaults(rules)
        self.useFixture(fixtures.MonkeyPatch('placement.policy._enforcer', other))

        self.assertFalse(self.is_allowed())

    def test_a_permission_that_is_granted_while_rules_change_is_not_remembered(self):
        authorize = oslo_policy.Enforcer.authorize

        def change_afterwards(*args: Any, **kwargs: Any) -> bool:
            granted = authorize(*args, **kwargs)
            policy.set_rules(oslo_policy.Rules.from_dict({self.LIST: '!'}))
            return granted

        with mock.patch.object(oslo_policy.Enforcer, 'authorize', change_afterwards):
            self.assertTrue(self.is_allowed())
        self.assertFalse(self.is_allowed())

    def test_rules_are_evaluated_once(self):
        self.assertEqual(1, self.evaluations())
        self.assertEqual(1, self.evaluations(roles=['admin', 'reader']))

    def test_unhashable_values_are_not_remembered(self):
        expression = 'role:admin or project_id:%(project_id)s'
        policy.set_rules(oslo_policy.Rules.from_dict({self.LIST: expression}))

        self.assertEqual(2, self.evaluations(target={'project_id': ['list']}))

    def test_debug_logging_shows_each_evaluation(self):
        self.useFixture(fixtures.FakeLogger('oslo_policy.policy', logging.DEBUG))

        self.assertEqual(2, self.evaluations())

    def test_the_number_of_permissions_is_limited(self):
        for number in range(permissions.MAX_REMEMBERED + 10):
            self.assertTrue(self.is_allowed(roles=['admin', str(number)]))

        self.assertEqual(10, len(policy._permissions.current().granted))


class PolicyFixtureTest(PolicyTestCase):
    def setUp(self):
        super().setUp()

        self.conf_fixture = self.useFixture(config_fixture.Config(self.configure()))
        self.conf_fixture.config(state_path=str(self.directory))

    def test_the_policy_file_is_below_the_state_path(self):
        path = self.directory / 'etc' / 'placement' / 'policy.yaml'
        path.parent.mkdir(parents=True)
        path.write_text('"placement:traits:show": "role:member"\n')
        self.useFixture(policy_fixture.PolicyFixture(self.conf_fixture))

        self.assertEqual({'placement:traits:show'}, self.allowed(roles=['member']))

    def test_other_rules_instead_of_the_defaults(self):
        rules = self.useFixture(policy_fixture.PolicyFixture(self.conf_fixture))
        rules.set_rules({'placement:traits:show': 'role:member'})

        self.assertEqual({'placement:traits:show'}, self.allowed(roles=['member']))
        self.assertEqual(set(), self.allowed(roles=['service']))

    def test_other_rules_in_addition_to_the_defaults(self):
        rules = self.useFixture(policy_fixture.PolicyFixture(self.conf_fixture))
        rules.set_rules({'placement:traits:show': 'role:member'}, overwrite=False)

        self.assertEqual({'placement:traits:show'}, self.allowed(roles=['member']))
        self.assertEqual(ROUTES - {'placement:traits:show'}, self.allowed(roles=['service']))
