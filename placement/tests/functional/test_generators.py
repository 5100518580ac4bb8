"""The generators of oslo.config and oslo.policy use the entry points of the distribution."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile

import fixtures
from oslotest import base
import yaml

import placement
from placement import policies, version
from placement.tests import where
from placement.tests.waiting import LONGEST

GENERATOR = pathlib.Path(placement.__file__).parents[1] / 'etc/placement/config-generator.conf'
PROGRAM = """
import importlib.metadata, sys
sys.argv[0] = sys.argv.pop(1)
(command,) = importlib.metadata.entry_points(group='console_scripts', name=sys.argv[0])
sys.exit(command.load()())
"""
# A distribution in place of osprofiler, which is optional.
PROFILER = {
    'osprofiler.py': """
from oslo_config import cfg
def list_opts():
    return [('profiler', [cfg.BoolOpt('enabled')])]
""",
    'osprofiler-4.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: osprofiler\nVersion: 4.0\n',
    'osprofiler-4.0.dist-info/entry_points.txt': (
        '[oslo.config.opts]\nosprofiler = osprofiler:list_opts\n'
    ),
}
POLICY = """
"placement:traits:list": "role:reader"
"placement:traits:show": "rule:admin_or_service_api"
"""


@where.only_on('sqlite', reason='No SQL statement is executed.')
class GeneratorTest(base.BaseTestCase):
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
            env={name: value for name, value in os.environ.items() if not name.startswith('OS_')},
            timeout=LONGEST,
        )
        self.assertEqual(status, completed.returncode, completed.stdout + completed.stderr)
        return completed.stdout

    def test_the_configuration_sample_has_all_options(self):
        sample = self.run_tool('oslo-config-generator', '--namespace', 'placement.conf')

        groups = [line for line in sample.splitlines() if line.startswith('[')]
        names = ('DEFAULT', 'api', 'metrics', 'placement', 'placement_database', 'workarounds')
        self.assertEqual([f'[{name}]' for name in names], groups)
        self.assertIn('#pybasedir = <Path>', sample)
        self.assertNotIn('log_options', sample)
        self.assertNotIn(tempfile.gettempdir(), sample)

    def test_the_validator_knows_the_options_of_osprofiler(self):
        for name, text in PROFILER.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text)
        configuration = self.folder / 'placement.conf'
        files = ('--config-file', str(GENERATOR), '--input-file', str(configuration))
        for option, status in (('enabled', 0), ('enabeld', 1)):
            configuration.write_text(f'[profiler]\n{option} = true\n')
            self.run_tool('oslo-config-validator', *files, status=status)

    def test_the_policy_sample_has_all_rules(self):
        sample = self.run_tool('oslopolicy-sample-generator', '--namespace', 'placement')

        for rule in policies.list_rules():
            self.assertIn(f'#"{rule.name}": "{rule.check_str}"', sample)
        self.assertIn('# POST  /reshaper', sample)

    def test_the_tools_read_the_policy_file(self):
        """One rule differs from its default, and another one does not."""
        configuration = self.folder / 'placement.conf'
        configuration.write_text('[oslo_policy]\npolicy_file = policy.yaml\n')
        (self.folder / 'policy.yaml').write_text(POLICY)
        arguments = ('--namespace', 'placement', '--config-file', str(configuration))
        effective = yaml.safe_load(self.run_tool('oslopolicy-policy-generator', *arguments))
        self.assertEqual({rule.name for rule in policies.list_rules()}, set(effective))
        self.assertEqual('role:reader', effective['placement:traits:list'])
        redundant = self.run_tool('oslopolicy-list-redundant', *arguments)
        self.assertEqual(POLICY.splitlines()[2:], redundant.splitlines())
        self.run_tool('oslopolicy-validator', *arguments)
        (self.folder / 'policy.yaml').write_text('"placement:nothing": "role:reader"\n')
        self.run_tool('oslopolicy-validator', *arguments, status=1)
