"""The interruption of `placement-manage drain --each`."""

import contextlib
import io
import json
from unittest import mock

from oslo_config import cfg
from oslotest import base

from placement.admin.drain.report import Drain, Tree
from placement.cmd import drain, program

RESULTS = [
    Drain([Tree('uuid-1', 'host-1')], 'fits', None, 1, 1, {}, []),
    Drain([Tree('uuid-2', 'host-2')], 'not found', None, 2, 1, {'VCPU': 3}, []),
]


class InterruptionTest(base.BaseTestCase):
    def run_command(self, results: list[Drain], **arguments: object) -> tuple[int, str, str]:
        def planned(*_: object):
            yield from results
            raise KeyboardInterrupt

        config = mock.Mock(cfg.ConfigOpts)
        config.category = mock.Mock(
            names=[],
            each=True,
            providers=[],
            consumer=[],
            where='',
            same_aggregates=False,
            same_traits=[],
            moves=None,
            assume=[],
            **arguments,
        )
        snapshot = mock.patch('placement.db.engine.snapshot', mock.MagicMock())
        output, errors = io.StringIO(), io.StringIO()
        with (
            snapshot,
            mock.patch.object(drain, '_planned', planned),
            mock.patch('placement.admin.unlisted.notice', return_value=None),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            return drain._drain(config), output.getvalue(), errors.getvalue()

    def test_the_known_results_are_printed(self):
        status, text, errors = self.run_command(RESULTS, format='table')
        self.assertEqual(program.CANNOT, status)
        self.assertIn('1 of 2 hosts can be drained; host-2 lacks room for 1 consumer', text)
        self.assertEqual('The command was interrupted after 2 trees.\n', errors)
        _, text, _ = self.run_command(RESULTS, format='json')
        self.assertEqual(['not found', 'fits'], [one['verdict'] for one in json.loads(text)])

    def test_n_plus_1_is_not_claimed(self):
        _, text, errors = self.run_command(RESULTS[:1], format='table')
        self.assertIn('\nEach of 1 host can be drained.\n', text)
        self.assertEqual('The command was interrupted after 1 tree.\n', errors)

    def test_without_a_result(self):
        self.assertRaises(KeyboardInterrupt, self.run_command, [], format='table')
