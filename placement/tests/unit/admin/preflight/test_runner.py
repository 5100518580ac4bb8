"""The execution of checks: time limits and crashes."""

import threading

from oslo_config import cfg
from oslotest import base

from placement import conf
from placement.admin.preflight import model, runner
from placement.admin.preflight.model import Check


class RunTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.config = cfg.ConfigOpts()
        conf.register_opts(self.config)
        self.config.set_override('connection', 'x://me:hush@y/z', group='placement_database')
        self.config([], default_config_files=[], default_config_dirs=[])

    def run_checks(self, *checks: Check, seconds: float = 60) -> dict[str, str]:
        return {
            finding.name: f'{finding.verdict.result}: {finding.verdict.detail}'
            for finding in runner.run(self.config, checks, seconds)
        }

    def test_a_check_that_crashes_does_not_stop_the_others(self):
        """Its message contains a secret, which is masked unless it is a part of a word."""

        def crash(_config: cfg.ConfigOpts) -> list[model.Verdict]:
            raise RuntimeError('in two\nlines, with hush and hushed')

        self.assertEqual(
            {
                'a': 'failure: The check failed: in two lines, with *** and hushed',
                'b': 'ok: Fine.',
            },
            self.run_checks(Check('a', crash), Check('b', lambda _: [model.ok('Fine.')])),
        )

    def test_a_check_that_does_not_end(self):
        never = threading.Event()
        self.addCleanup(never.set)
        checks = (
            Check('a', lambda _: [model.ok(str(never.wait()))]),
            Check('b', lambda _: [model.ok('Fine.')], needs=('a',)),
        )
        self.assertEqual(
            {
                'a': 'failure: The check did not end within 0.1 seconds.',
                'b': 'skipped: The check "a" failed.',
            },
            self.run_checks(*checks, seconds=0.1),
        )
