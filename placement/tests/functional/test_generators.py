"""The generators of oslo.config and oslo.policy use the entry points of the distribution."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import ClassVar

import fixtures
from oslotest import base
import yaml

from placement import policies, version
from placement.tests import where
from placement.tests.waiting import LONGEST

PROGRAM = """
import importlib.metadata, sys
sys.argv[0] = sys.argv.pop(1)
(command,) = importlib.metadata.entry_points(group='console_scripts', name=sys.argv[0])
sys.exit(command.load()())
"""


@where.only_on('sqlite', reason='No SQL statement is executed.')
class GeneratorTest(base.BaseTestCase):
    environment: ClassVar[dict[str, str]] = {
        name: value for name, value in os.environ.items() if not name.startswith('OS_')
    }

    def setUp(self):
        super().setUp()
        try:
            importlib.metadata.version(version.DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            self.skipTest('the distribution is not installed')
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_tool(self, *arguments: str, status: int = 0) -> str:
        completed = subprocess.run(
            [sys.executable, '-c', PROGRAM, *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=LONGEST,
        )
        output = completed.stdout + completed.stderr
        self.assertEqual(status, completed.returncode, output)
        return completed.stdout

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def test_the_configuration_sample_has_all_options(self):
        sample = self.run_tool('oslo-config-generator', '--namespace', 'placement.conf')

        groups = [line for line in sample.splitlines() if line.startswith('[')]
        names = ('DEFAULT', 'api', 'metrics', 'placement', 'placement_database', 'workarounds')
        self.assertEqual([f'[{name}]' for name in names], groups)
        self.assertIn('#pybasedir = <Path>', sample)
        self.assertNotIn('log_options', sample)
        self.assertNotIn(tempfile.gettempdir(), sample)

    def test_the_policy_sample_has_all_rules(self):
        sample = self.run_tool('oslopolicy-sample-generator', '--namespace', 'placement')

        for rule in policies.list_rules():
            self.assertIn(f'#"{rule.name}": "{rule.check_str}"', sample)
        self.assertIn('# POST  /reshaper', sample)

    def test_the_effective_policy_combines_the_file_and_the_defaults(self):
        self.write('policy.yaml', '"placement:traits:list": "role:reader"\n')
        config = self.write('placement.conf', '[oslo_policy]\npolicy_file = policy.yaml\n')
        output = self.run_tool(
            *('oslopolicy-policy-generator', '--namespace', 'placement'),
            *('--config-file', config),
        )
        effective = yaml.safe_load(output)

        self.assertEqual({rule.name for rule in policies.list_rules()}, set(effective))
        self.assertEqual('role:reader', effective['placement:traits:list'])

    def test_a_rule_equal_to_its_default_is_redundant(self):
        self.write(
            'policy.yaml',
            '"placement:traits:list": "rule:admin_or_service_api"\n'
            '"placement:traits:show": "role:reader"\n',
        )
        config = self.write('placement.conf', '')
        arguments = ('--namespace', 'placement', '--config-file', config)

        self.assertEqual(
            '"placement:traits:list": "rule:admin_or_service_api"\n',
            self.run_tool('oslopolicy-list-redundant', *arguments),
        )
        self.run_tool('oslopolicy-validator', *arguments)

    def test_a_policy_with_an_unknown_rule_is_invalid(self):
        self.write('policy.yaml', '"placement:nothing": "role:reader"\n')
        config = self.write('placement.conf', '')
        self.run_tool(
            *('oslopolicy-validator', '--namespace', 'placement', '--config-file', config), status=1
        )
