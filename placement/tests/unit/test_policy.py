"""The default policy, the life cycle of the enforcer, and permissions that are remembered."""

import logging
import os
import pathlib
import time
from typing import Any
from unittest import mock

import cachetools
import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_context import context
from oslo_policy import policy as oslo_policy
from oslotest import base

from placement import conf, exception, policies, policy
from placement.tests.unit import identity, policy_fixture

PROJECT = 'the-project'
LIST = 'placement:traits:list'
SHOW = 'placement:traits:show'
RESHAPE = 'placement:reshaper:reshape'
USAGES = 'placement:usages'
# Other rules refer to rules without a colon.
ROUTES = {rule.name for rule in policies.list_rules() if ':' in rule.name}


class MemoryClock(identity.Clock):
    """The clock of the memory, which stands still unless the test advances it."""

    def _setUp(self) -> None:
        super()._setUp()
        memory = policy._GRANTED
        memory = cachetools.TTLCache(memory.maxsize, memory.ttl, lambda: time.monotonic())
        self.useFixture(fixtures.MonkeyPatch('placement.policy._GRANTED', memory))


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

    def restart(self, **options: Any) -> None:
        """Create the enforcer as the start of the service does."""
        policy.reset()
        policy.init(self.configure(**options))

    def replace(self, path: pathlib.Path, content: str | bytes) -> None:
        """Replace a file, which has another modification time then."""
        new = self.directory / 'new'
        new.write_bytes(content if isinstance(content, bytes) else content.encode())
        if path.exists():
            before = path.stat()
            os.utime(new, (before.st_atime, before.st_mtime + 5))
        new.rename(path)

    def permits(self, rule: str, target: dict[str, Any] | None = None, **caller: Any) -> bool:
        """Return whether a caller may perform an operation; by default an administrator."""
        usual = {'user_id': 'user', 'project_id': PROJECT, 'roles': ['admin']}
        found = context.RequestContext(**usual | caller)
        return policy.authorize(found, rule, target or {}, do_raise=False)

    def allowed(self, *roles: str, target_project: str = PROJECT, **caller: Any) -> set[str]:
        """Return the rules of API operations that the caller may perform."""
        target = {'project_id': target_project, 'user_id': 'user'}
        return {rule for rule in ROUTES if self.permits(rule, target, roles=list(roles), **caller)}


class DefaultsTest(PolicyTestCase):
    def test_roles(self):
        for options, admin in (({}, ROUTES - {RESHAPE}), ({'enforce_new_defaults': False}, ROUTES)):
            self.restart(**options)
            for role, expected in (
                ('admin', admin),
                ('Admin', admin),
                ('service', ROUTES),
                ('reader', {USAGES}),
                ('member', set()),
            ):
                self.assertEqual(expected, self.allowed(role), role)
            self.assertEqual(set(), self.allowed('reader', target_project='another'))

    def test_tokens_of_another_scope_are_rejected(self):
        self.restart()
        for role in ('admin', 'service'):
            self.assertEqual(set(), self.allowed(role, system_scope='all'))
            self.assertEqual(set(), self.allowed(role, project_id=None, domain_id='domain'))

    def test_exceptions(self):
        self.restart()
        for caller in ({'roles': ['member']}, {'roles': ['admin'], 'system_scope': 'all'}):
            caller = context.RequestContext(user_id='user', project_id=PROJECT, **caller)
            error = self.assertRaises(
                exception.PolicyNotAuthorized, policy.authorize, caller, USAGES, {}
            )
            self.assertIn(USAGES, str(error))
            self.assertIs(caller, context.get_current())
        self.assertRaises(oslo_policy.PolicyNotRegistered, self.permits, 'placement:nothing')


class EnforcerTest(PolicyTestCase):
    def test_init_has_no_effect_until_reset(self):
        self.policy_file.write_text(f'"{LIST}": "role:reader"\n')
        policy.init(self.configure())
        self.assertIn(LIST, self.allowed('reader'))
        other = {'policy_file': str(self.directory / 'none.yaml')}
        policy.init(self.configure(**other))
        self.assertIn(LIST, self.allowed('reader'))
        self.restart(**other)
        self.assertNotIn(LIST, self.allowed('reader'))

    def test_given_rules_replace_the_defaults(self):
        policy.init(self.configure(), rules=[oslo_policy.RuleDefault(LIST, '@')])
        self.assertTrue(self.permits(LIST, roles=[]))
        self.assertRaises(oslo_policy.PolicyNotRegistered, self.permits, SHOW)

    def command_line_tool(self, *arguments: str) -> tuple[cfg.ConfigOpts, mock.Mock]:
        """Do what the tools of oslo.policy do, whose configuration is the process-wide one."""
        file = self.directory / 'placement.conf'
        file.write_text(f'[oslo_policy]\npolicy_file = {self.policy_file}\n')
        self.policy_file.write_text(f'"{LIST}": "role:reader"\n')
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_default('connection', 'sqlite://', 'placement_database')
        if arguments:
            config(arguments)
        with (
            mock.patch.object(cfg, 'CONF', config),
            mock.patch.object(cfg, 'find_config_files', return_value=[str(file)]) as find,
        ):
            policy.get_enforcer()
        return config, find

    def test_tools_parse_the_default_files_of_the_service(self):
        _, find = self.command_line_tool()
        self.assertEqual('placement', find.call_args.args[0])
        self.assertIn(LIST, self.allowed('reader'))

    def test_configuration_files_of_the_command_line_are_not_replaced(self):
        file = self.directory / 'other.conf'
        file.write_text('')
        config, _ = self.command_line_tool('--config-file', str(file))
        self.assertEqual([str(file)], config.config_file)

    def test_the_fixture(self):
        """Other projects use it, too."""
        conf_fixture = self.useFixture(config_fixture.Config(self.configure()))
        conf_fixture.config(state_path=str(self.directory))
        path = self.directory / 'etc' / 'placement' / 'policy.yaml'
        path.parent.mkdir(parents=True)
        path.write_text(f'"{SHOW}": "role:member"\n')
        rules = self.useFixture(policy_fixture.PolicyFixture(conf_fixture))
        self.assertEqual({SHOW}, self.allowed('member'))
        rules.set_rules({LIST: 'role:member'}, overwrite=False)
        self.assertEqual({SHOW, LIST}, self.allowed('member'))
        self.assertEqual(ROUTES - {SHOW, LIST}, self.allowed('service'))
        rules.set_rules({SHOW: 'role:member'})
        self.assertEqual({SHOW}, self.allowed('member'))
        self.assertEqual(set(), self.allowed('service'))


class RememberedPermissionsTest(PolicyTestCase):
    """Permissions are remembered for a second; nobody receives the permission of another caller."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('oslo_policy.policy', logging.INFO))
        self.clock = self.useFixture(MemoryClock())
        self.policy_file.write_text(f'"{LIST}": "role:admin"\n')
        self.restart()

    def evaluations(self, *callers: dict[str, Any]) -> int:
        """Return how often the requests of callers evaluate the rule."""
        wrapped = oslo_policy.Enforcer.authorize
        with mock.patch.object(oslo_policy.Enforcer, 'authorize', autospec=True) as authorize:
            authorize.side_effect = wrapped
            for caller in callers:
                self.permits(LIST, **caller)
        return authorize.call_count

    def test_a_changed_file_takes_effect_within_a_second(self):
        self.assertTrue(self.permits(LIST))
        self.replace(self.policy_file, f'"{LIST}": "!"\n')
        # Requests do not prolong the second.
        for _ in range(2):
            self.assertTrue(self.permits(LIST))
            self.clock.advance(0.5)
        self.assertFalse(self.permits(LIST))
        self.replace(self.policy_file, f'"{LIST}": "role:admin"\n')
        self.clock.advance(1)
        self.assertTrue(self.permits(LIST))

    def test_what_is_remembered(self):
        for callers, expected in (
            ([{}, {}], 1),
            ([{'roles': ['admin', 'reader']}] * 2, 1),
            # The default rules do not use the user. One of them uses the project of the target.
            ([{'user_id': one, 'target': {'user_id': one}} for one in 'ab'], 1),
            ([{'target': {'project_id': one}} for one in (['a'], ['a'], 'a')], 2),
            ([{'roles': ['member']}] * 2, 2),
        ):
            self.restart()
            self.assertEqual(expected, self.evaluations(*callers), callers)
        self.assertEqual(1, self.evaluations({}))
        self.clock.advance(1)
        self.assertEqual(1, self.evaluations({}))

    def test_each_part_of_the_identity_counts(self):
        self.assertTrue(self.permits(LIST))
        for caller in (
            {'roles': ['member']},
            {'roles': []},
            {'system_scope': 'all'},
            {'project_id': None, 'domain_id': 'domain'},
        ):
            self.assertFalse(self.permits(LIST, **caller), caller)
        self.assertFalse(self.permits(RESHAPE))

    def test_each_attribute_that_a_rule_can_use_counts(self):
        nobody = dict.fromkeys(['user_id', 'project_id', 'roles'])
        for name in context.RequestContext().to_policy_values():
            value = ['x'] if 'roles' in name else 'x'
            text = 'role:x or service_roles:x' if 'roles' in name else f'{name}:x'
            for template in ('{}', '@ and rule:a', 'not rule:b', 'rule:unknown'):
                texts = {SHOW: template.format(text), 'a': text, 'b': f'not ({text})'}
                policy.reset()
                # The rule permits tokens of all scopes.
                policy.init(
                    self.configure(policy_default_rule='a'),
                    rules=[oslo_policy.RuleDefault(*rule) for rule in texts.items()],
                )
                self.assertTrue(self.permits(SHOW, **nobody | {name: value}), name)
                self.assertFalse(self.permits(SHOW, **nobody | {name: None}), name)

    def test_a_rule_with_an_unknown_condition_can_use_everything(self):
        """For example, a policy server receives all attributes."""
        callers = [{}, {'user_id': 'other'}, {'target': {'a': 'other'}}]
        with mock.patch.object(oslo_policy.Enforcer, 'enforce', return_value=True):
            for text in ('http://server/', 'role:admin or not https://server/', 'a:%(a)d', 'a:%%'):
                self.replace(self.policy_file, f'"a": "{text}"\n')
                self.restart()
                self.assertEqual(3, self.evaluations(*callers, *callers), text)

    def test_each_value_of_the_target_that_a_rule_uses_counts(self):
        self.replace(self.policy_file, f'"{LIST}": "\'x\':%(a)s and role:%(b)s"\n')
        self.restart()
        for target, expected in (
            ({'a': 'x', 'b': 'admin'}, True),
            ({'a': 'x', 'b': 'other'}, False),
            ({'a': 'y', 'b': 'admin'}, False),
            ({'b': 'admin'}, False),
        ):
            self.assertEqual(expected, self.permits(LIST, target), target)

    def test_the_project_and_the_target_count(self):
        own, another = {'project_id': PROJECT}, {'project_id': 'another'}
        for target, caller, expected in (
            (own, {}, True),
            (another, {}, False),
            (own, another, False),
            (another, another, True),
        ):
            self.assertEqual(expected, self.permits(USAGES, target, roles=['reader'], **caller))

    def test_rules_that_a_program_sets_take_effect_at_once(self):
        self.assertTrue(self.permits(LIST))
        policy.set_rules(oslo_policy.Rules.from_dict({LIST: '!'}))
        self.assertFalse(self.permits(LIST))
        self.restart()
        self.assertTrue(self.permits(LIST))
        with fixtures.MonkeyPatch('placement.policy._policy', None):
            policy.init(self.configure(), rules=[oslo_policy.RuleDefault(SHOW, '!')])
            self.assertFalse(self.permits(SHOW))
        self.assertTrue(self.permits(SHOW))

    def test_the_number_of_permissions_is_limited(self):
        callers = [{'roles': ['admin', str(number)]} for number in range(1000)]
        self.assertEqual(1000, self.evaluations(*callers))
        self.assertEqual(0, self.evaluations(*callers))
        self.assertEqual(1001, self.evaluations({}, *callers))
