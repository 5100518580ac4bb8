"""Checks of policy files."""

import pathlib

import fixtures
from oslo_config import cfg
from oslo_policy import policy
from oslotest import base

from placement import conf, policies
from placement.admin.preflight import policy_files
from placement.admin.preflight.model import Result, Verdict
from placement.admin.preflight.policy_files import Location, PolicyFile

OK, WARNING, FAILURE = Result.OK, Result.WARNING, Result.FAILURE
DEFAULTS = [
    policy.RuleDefault('admin_api', 'role:admin'),
    policy.RuleDefault('placement:traits:list', 'rule:admin_api'),
]


class FilesTest(base.BaseTestCase):
    FOUND = Location('policy.yaml', '/etc/placement/policy.yaml', is_set=False)

    def results(
        self, file: Location, directory: Location | None = None, content: PolicyFile | None = None
    ) -> list[Result]:
        verdicts = policy_files.judge_files(
            file, [directory] if directory else [], [content] if content else []
        )
        return [verdict.result for verdict in verdicts]

    def test_the_default_file_need_not_exist(self):
        self.assertEqual([OK], self.results(Location('policy.yaml', None, is_set=False)))

    def test_a_configured_file_has_to_exist(self):
        self.assertEqual([FAILURE], self.results(Location('my.yaml', None, is_set=True)))

    def test_directories(self):
        for directory, expected in (
            (Location('policy.d', None, is_set=False), OK),
            (Location('policy.d', None, is_set=True), WARNING),
            (Location('policy.d', '/etc/placement/policy.d', is_set=True), OK),
        ):
            self.assertEqual([expected], self.results(self.FOUND, directory), directory)

    def test_contents(self):
        for file, expected in (
            (PolicyFile('a.yaml', {'admin_api': 'role:admin'}), OK),
            (PolicyFile('a.yaml', None), OK),  # an empty file
            (PolicyFile('a.yaml', error='Permission denied'), FAILURE),
        ):
            self.assertEqual([expected], self.results(self.FOUND, content=file), file)


class RulesTest(base.BaseTestCase):
    def judge(self, **rules: str) -> list[Verdict]:
        renamed = {name.replace('__', ':'): text for name, text in rules.items()}
        return policy_files.judge_rules(renamed, DEFAULTS)

    def assertJudged(self, result: Result, fragment: str, **rules: str) -> None:
        verdicts = self.judge(**rules)
        self.assertEqual([result], [verdict.result for verdict in verdicts], rules)
        self.assertIn(fragment, f'{verdicts[0].detail} {verdicts[0].remedy}')

    def test_valid_rules(self):
        self.assertJudged(OK, 'Changed rules: 1.', admin_api='role:boss')
        self.assertJudged(OK, 'Changed rules: 0.')
        self.assertJudged(OK, 'Changed rules: 1.', admin_api='!')

    def test_a_rule_that_equals_its_default_is_a_note(self):
        self.assertJudged(OK, '1 equal their defaults', admin_api='role:admin')

    def test_a_misspelled_name(self):
        self.assertJudged(
            WARNING, 'Did you mean placement:traits:list?', placement__trait__list='role:admin'
        )

    def test_an_additional_rule_that_another_rule_uses(self):
        self.assertJudged(OK, 'Changed rules: 2.', mine='role:me', admin_api='rule:mine')
        self.assertJudged(WARNING, 'Unknown rule: mine', mine='role:me')

    def test_an_invalid_expression(self):
        for text in ('role:admin or', 'role', 'and and', 5, None):
            self.assertJudged(FAILURE, 'admin_api is invalid', admin_api=text)

    def test_a_reference_to_a_missing_rule(self):
        self.assertJudged(
            FAILURE, 'admin_api refers to the rule boss', admin_api='role:admin or (rule:boss)'
        )

    def test_rules_that_refer_to_each_other(self):
        self.assertJudged(FAILURE, 'to itself', admin_api='rule:placement:traits:list')

    def test_the_defaults_of_the_service(self):
        verdicts = policy_files.judge_rules({}, policies.list_rules())
        self.assertEqual([OK], [verdict.result for verdict in verdicts])


class ReadTest(base.BaseTestCase):
    """Files that oslo.policy would find."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def configure(self, text: str = '') -> cfg.ConfigOpts:
        path = self.folder / 'placement.conf'
        path.write_text(f'[placement_database]\nconnection = sqlite://\n[oslo_policy]\n{text}')
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config(['--config-file', str(path)], project='placement')
        return config

    def results(self, config: cfg.ConfigOpts) -> list[Result]:
        verdicts = [*policy_files.check_files(config), *policy_files.check_rules(config)]
        return [verdict.result for verdict in verdicts]

    def test_without_files(self):
        self.assertEqual([OK, OK], self.results(self.configure()))

    def test_a_missing_file(self):
        self.assertEqual([FAILURE, OK], self.results(self.configure('policy_file = my.yaml\n')))

    def test_rules_of_a_file_and_of_a_directory(self):
        (self.folder / 'policy.yaml').write_text('admin_api: "rule:boss"\n')
        (self.folder / 'policy.d').mkdir()
        (self.folder / 'policy.d' / 'a.yaml').write_text('boss: "role:boss"\n')
        (self.folder / 'policy.d' / '.hidden').write_text('[')
        self.assertEqual([OK, OK], self.results(self.configure()))
        (self.folder / 'policy.d' / 'a.yaml').write_text('bos: "role:boss"\n')
        self.assertEqual([OK, WARNING, FAILURE], self.results(self.configure()))

    def test_malformed_yaml(self):
        (self.folder / 'policy.yaml').write_text('admin_api: "role:admin\n')
        verdicts = policy_files.check_files(self.configure())
        self.assertEqual([FAILURE], [verdict.result for verdict in verdicts])
        self.assertIn('line 2', verdicts[0].detail)

    def test_a_list_of_rules(self):
        (self.folder / 'policy.yaml').write_text('- admin_api\n')
        self.assertEqual([FAILURE], [v.result for v in policy_files.check_files(self.configure())])

    def test_an_unreadable_directory(self):
        (self.folder / 'policy.d').write_text('')
        verdicts = policy_files.check_files(self.configure())
        self.assertEqual([FAILURE], [verdict.result for verdict in verdicts])
        self.assertIn('policy.d', verdicts[0].detail)

    def test_a_policy_server_whose_certificate_is_not_verified(self):
        rules = 'admin_api: "role:a or https://policy.example/"\nservice_api: "http://other/"\n'
        (self.folder / 'policy.yaml').write_text(rules)
        verdicts = policy_files.check_rules(self.configure())
        self.assertEqual([OK, WARNING], [verdict.result for verdict in verdicts])
        self.assertIn('admin_api', verdicts[1].detail)
        verified = self.configure('remote_ssl_verify_server_crt = true\n')
        self.assertEqual([OK, OK], self.results(verified))

    def test_an_unreadable_file(self):
        (self.folder / 'policy.yaml').mkdir()
        self.assertEqual([FAILURE, OK], self.results(self.configure()))
