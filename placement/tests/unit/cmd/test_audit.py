"""The confirmation that `placement-manage audit --purge` requires."""

import io

import fixtures
from oslotest import base

from placement.admin.failure import CannotProceedError
from placement.cmd import audit
from placement.tests.unit.cmd.test_output import Terminal


class ConfirmationTest(base.BaseTestCase):
    def confirm(self, stdin):
        self.useFixture(fixtures.MonkeyPatch('sys.stdin', stdin))
        stderr = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', stderr))
        audit._confirm()
        return stderr.getvalue()

    def test_the_question_says_that_all_writers_must_be_stopped(self):
        question = self.confirm(Terminal('yes\n'))
        self.assertIn('safe only while nothing writes to the database', question)
        self.assertIn('Type yes', question)

    def test_every_other_answer_is_a_refusal(self):
        for answer in ('', '\n', 'no\n', 'y\n'):
            error = self.assertRaises(CannotProceedError, self.confirm, Terminal(answer))
            self.assertIn('nothing was changed', str(error))

    def test_a_script_needs_the_option(self):
        for stdin in (io.StringIO('yes\n'), None):
            error = self.assertRaises(CannotProceedError, self.confirm, stdin)
            self.assertIn('--yes', str(error))
