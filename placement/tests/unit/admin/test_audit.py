"""The pure parts of the audit: corrections of roots, and the report."""

import io
import re
import uuid

import fixtures
from oslotest import base

from placement.admin.audit import providers, render
from placement.admin.audit.model import CODES, ERROR, NOTICE, Finding

HOST, OTHER, CONSUMER, SERVER = (str(uuid.UUID(int=number)) for number in range(1, 5))
OWNERS = {'project': uuid.UUID(int=5).hex, 'user': uuid.UUID(int=6).hex, 'consumer_type': None}
PLACE = {'provider': 'compute-1', 'provider_uuid': HOST}
CHANGE = {'before': {'generation': None}, 'after': {'generation': 0}}
TREES = {'first_tree': 'compute-1', 'first_tree_uuid': HOST, 'last_tree_uuid': OTHER}
# One finding of each kind of row, in the order of the report.
FINDINGS = (
    Finding('orphan-provider', ERROR, 1, 0, ({'table': 'inventories', 'provider_id': 42},)),
    Finding('no-inventory', ERROR, 1, 0, ({**PLACE, 'resource_class': 'VCPU', 'used': 1},)),
    Finding('over-capacity', NOTICE, 1, 0, ({**PLACE, 'used': 80, 'capacity': 64},)),
    Finding('several-trees', NOTICE, 1, 0, ({'consumer_uuid': CONSUMER, **OWNERS, **TREES},)),
    Finding('no-allocations', NOTICE, 9, 0, ({'server': 'a', 'server_uuid': SERVER},)),
    Finding('null-generation', ERROR, 1, 1, ({**PLACE, **CHANGE},)),
    Finding('duplicate-name', NOTICE, 1, 0, ({'kind': 'project', 'names': ['a', 'A']},)),
    Finding('unused', NOTICE, 1, 0, ({'kind': 'project', 'name': 'one'},)),
)


class RootsTest(base.BaseTestCase):
    def test_only_the_expected_links_are_corrected(self):
        wrong = [(1, None, None, 1), (2, 1, 5, 1)]
        for current, expected in (
            ({1: (None, None), 2: (1, 5)}, {1: 1, 2: 1}),
            ({1: (None, 1), 2: (1, 5)}, {2: 1}),
            ({1: (5, 5), 2: (1, 5)}, {}),
            ({1: (None, None), 2: (5, 5)}, {1: 1}),
            ({2: (1, 5)}, {}),
            ({1: (None, 1), 2: (1, 1)}, {}),
        ):
            self.assertEqual(expected, providers.root_corrections(wrong, current), current)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class ReportTest(base.BaseTestCase):
    def report(self, *findings: Finding) -> str:
        return render.report(findings or FINDINGS)

    def test_the_verdict_comes_first(self):
        one = FINDINGS[0]
        fixed = Finding('idle-consumer', ERROR, 3, 3)
        for findings, verdict in (
            (
                FINDINGS,
                'The audit found 3 errors and 13 notices. It corrected 1, and leaves 2 errors',
            ),
            ((one,), 'The audit found 1 error.'),
            ((fixed,), 'The audit found 3 errors. It corrected 3, and leaves none.'),
        ):
            self.assertTrue(self.report(*findings).startswith(verdict), findings)
        self.assertEqual('The audit found nothing.', render.report([]))

    def test_errors_come_first_and_commands_last(self):
        report = self.report()
        titles = re.findall(r'^([a-z-]+)(?:, changed rows)?:$', report, re.MULTILINE)
        ordered = sorted(FINDINGS, key=lambda one: one.severity)
        self.assertEqual([one.code for one in ordered], titles)
        self.assertEqual(
            [
                'placement-manage audit --fix',
                f'openstack resource provider inventory list {HOST}',
                f'openstack resource provider show --allocations {HOST}',
                f'openstack server migration list --server {CONSUMER}',
                f'nova-manage placement heal_allocations --verbose --instance {SERVER}',
                'placement-manage audit --purge --only unused',
            ],
            report.split('\n\nNext:\n')[1].replace('    ', '').splitlines(),
        )
        self.assertNotIn('Next:', self.report(Finding('no-inventory', ERROR, 1, 0, ({'used': 1},))))

    def test_cells(self):
        """Names and UUIDs share a column, `id` stands before ids, and texts are printable."""
        report = self.report()
        lines = [' '.join(line.replace('|', ' ').split()) for line in report.splitlines()]
        for line in (
            'inventories id 42',
            f'compute-1 {HOST} 80 64',
            f'a {SERVER}',
            'The table shows 1 of 9 findings.',
            'generation: - generation: 0',
            'project a, A',
        ):
            self.assertTrue(any(line in one for one in lines), (line, report))
        escaped = Finding('no-inventory', ERROR, 1, 0, ({'provider': 'a\x1b[31m'},))
        self.assertIn(r'a\x1b[31m', self.report(escaped))

    def test_the_width_of_the_terminal(self):
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', Terminal()))
        self.useFixture(fixtures.EnvironmentVariable('NO_COLOR', '1'))
        for columns in (80, 120, 200):
            self.useFixture(fixtures.EnvironmentVariable('COLUMNS', str(columns)))
            evidence = self.report().split('\n\nNext:')[0].split('\n\n', 1)[1]
            self.assertLessEqual(max(map(len, evidence.splitlines())), columns)
            for one in (HOST, OTHER, CONSUMER, SERVER, OWNERS['project'], OWNERS['user']):
                self.assertIn(one, evidence, columns)

    def test_colors(self):
        self.useFixture(fixtures.EnvironmentVariable('NO_COLOR'))
        self.assertNotIn('\x1b', self.report())
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', Terminal()))
        for finding, color in (
            (FINDINGS[0], 31),
            (FINDINGS[2], 33),
            (Finding('idle-consumer', ERROR, 3, 3), 32),
        ):
            self.assertTrue(self.report(finding).startswith(f'\x1b[{color}mThe audit'))
        self.useFixture(fixtures.EnvironmentVariable('NO_COLOR', '1'))
        self.assertNotIn('\x1b', self.report())

    def test_codes(self):
        """Each correction has its place."""
        orders = [code.order for code in CODES.values() if code.fixes]
        self.assertEqual(sorted(set(orders)), sorted(orders))
