"""The execution of checks, and the report."""

import json
import threading

from oslo_config import cfg
from oslotest import base

from placement import conf
from placement.admin.preflight import masking, model, render, runner
from placement.admin.preflight.checks import CHECKS
from placement.admin.preflight.model import Check, Finding, Result

PASSED = model.ok('Fine.')
FAILED = model.failure('Broken.', 'Repair it.')
WARNED = model.warning('Odd.', 'Look at it.')


def findings(*verdicts: model.Verdict) -> list[Finding]:
    return [Finding('A Check', verdict) for verdict in verdicts]


class RunTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.config = cfg.ConfigOpts()
        conf.register_opts(self.config)
        self.config.set_override('connection', 'x://me:hushhush@y/z', group='placement_database')
        self.config([], default_config_files=[], default_config_dirs=[])

    def run_checks(self, *checks: Check, seconds: float = 60) -> dict[str, str]:
        return {
            finding.name: f'{finding.verdict.result}: {finding.verdict.detail}'
            for finding in runner.run(self.config, checks, seconds)
        }

    def test_a_check_that_crashes_does_not_stop_the_others(self):
        def crash(config: cfg.ConfigOpts) -> list[model.Verdict]:
            raise RuntimeError('in two\nlines, with hushhush')

        self.assertEqual(
            {'a': 'failure: The check failed: in two lines, with ***', 'b': 'ok: Fine.'},
            self.run_checks(Check('a', crash), Check('b', lambda config: [PASSED])),
        )

    def test_a_check_that_does_not_end(self):
        never = threading.Event()
        self.addCleanup(never.set)

        def wait(config: cfg.ConfigOpts) -> list[model.Verdict]:
            never.wait()
            return [PASSED]

        self.assertEqual(
            {
                'a': 'failure: The check did not end within 0.1 seconds.',
                'b': 'skipped: The check "a" failed.',
            },
            self.run_checks(
                Check('a', wait), Check('b', lambda config: [PASSED], needs=('a',)), seconds=0.1
            ),
        )

    def test_checks_that_need_others(self):
        def not_executed(config: cfg.ConfigOpts) -> list[model.Verdict]:
            raise AssertionError

        skipped = model.skipped('Not configured.')
        self.assertEqual(
            {
                'warned': 'warning: Odd.',
                'after warned': 'ok: Fine.',
                'failed': 'failure: Broken.',
                'after failed': 'skipped: The check "failed" failed.',
                'after that': 'skipped: The check "failed" failed.',
                'skipped': 'skipped: Not configured.',
                'after skipped': 'skipped: Not configured.',
            },
            self.run_checks(
                Check('warned', lambda config: [WARNED]),
                Check('after warned', lambda config: [PASSED], needs=('warned',)),
                Check('failed', lambda config: [FAILED]),
                Check('after failed', not_executed, needs=('failed',)),
                Check('after that', not_executed, needs=('after failed',)),
                Check('skipped', lambda config: [skipped]),
                Check('after skipped', not_executed, needs=('skipped',)),
            ),
        )

    def test_secrets(self):
        self.assertIn('hushhush', masking.values(self.config))
        self.assertEqual('a *** b ***, abc', masking.mask('a ab-cd b ab, abc', {'ab', 'ab-cd'}))


class ChecksTest(base.BaseTestCase):
    def test_names_are_unique(self):
        names = [check.name for check in CHECKS]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_a_check_needs_earlier_checks(self):
        earlier: set[str] = set()
        for check in CHECKS:
            self.assertLessEqual(set(check.needs), earlier, check.name)
            earlier.add(check.name)


class ReportTest(base.BaseTestCase):
    def test_exit_status(self):
        skipped = model.skipped('No.')
        for verdicts, expected in (
            ((), 0),
            ((PASSED, skipped), 0),
            ((PASSED, WARNED), 1),
            ((WARNED, FAILED, PASSED), 2),
        ):
            self.assertEqual(expected, model.exit_status(findings(*verdicts)), verdicts)

    def test_json(self):
        self.assertEqual(
            {
                'checks': [
                    {'name': 'A Check', 'result': 'ok', 'detail': 'Fine.', 'remedy': ''},
                    {
                        'name': 'A Check',
                        'result': 'failure',
                        'detail': 'Broken.',
                        'remedy': 'Repair it.',
                    },
                ]
            },
            json.loads(render.document(findings(PASSED, FAILED))),
        )

    def test_table(self):
        long = model.warning('word ' * 50, 'Do something. ' * 20)
        lines = render.table(findings(PASSED, long)).splitlines()
        self.assertLessEqual(max(map(len, lines)), 120)
        for word in ('A Check', str(Result.WARNING), 'Fine.', 'Do something.'):
            self.assertTrue(any(word in line for line in lines), word)
