"""The command `placement-manage rename-uuid`, with the examples of its page."""

import os
import pathlib
import re
import subprocess

import sqlalchemy as sa

import placement
from placement.db.sqlalchemy import migration, models
from placement.tests.functional.cmd import base

PAGE = pathlib.Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'rename-uuid.rst'
_PROVIDERS = models.resource_providers


class RenameTest(base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')
        # The arguments of each command in the page, and what it prints.
        blocks = re.findall(r'\$ placement-manage (.+)\n((?: +\S.*\n)+)', PAGE.read_text())
        self.examples = [
            (command.split(), ''.join(f'{line.strip()}\n' for line in printed.splitlines()))
            for command, printed in blocks
        ]
        self.old, self.new = self.examples[0][0][-2:]
        with self.engine.begin() as conn:
            conn.execute(sa.insert(_PROVIDERS).values(uuid=self.old, name='compute-17'))
            conn.execute(sa.update(_PROVIDERS).values(root_provider_id=_PROVIDERS.c.id))

    def uuids(self) -> list[str]:
        with self.engine.connect() as conn:
            return list(conn.scalars(sa.select(_PROVIDERS.c.uuid)))

    def test_the_page(self):
        (plan, planned), (change, changed) = self.examples
        done = self.run_command(*plan)
        self.assertEqual((0, planned), (done.status, done.stdout + done.stderr))
        self.assertEqual([self.old], self.uuids())
        done = self.run_command(*change)
        self.assertEqual((0, changed), (done.status, done.stdout + done.stderr))
        self.assertEqual([self.new], self.uuids())

    def test_the_name_of_the_host(self):
        ((_, planned), _) = self.examples
        done = self.run_command('rename-uuid', '--dry-run', 'compute-17', self.new)
        self.assertEqual(0, done.status)
        self.assertTrue(planned.startswith(done.stdout), done.stdout)
        following = f'Next: placement-manage rename-uuid compute-17 {self.new}\n'
        self.assertTrue(done.stderr.endswith(following), done.stderr)

    def answer(self, text: str) -> tuple[int, str, str]:
        """Answer the question on a terminal; return the exit status and the outputs."""
        terminal, end = os.openpty()
        with os.fdopen(terminal, 'wb'), os.fdopen(end) as stdin:
            os.write(terminal, text.encode())
            arguments = ('rename-uuid', self.old, self.new)
            process = self.start(*arguments, interrupted=False, stdin=stdin, stdout=subprocess.PIPE)
            status = process.wait()
        with process.stdout, process.stderr:
            return status, process.stdout.read().decode(), process.stderr.read().decode()

    def test_the_question_on_a_terminal(self):
        """The rows are printed before it; another answer than yes changes nothing."""
        ((_, planned), _) = self.examples
        for text, expected, remaining in (('no\n', 2, self.old), ('yes\n', 0, self.new)):
            status, output, errors = self.answer(text)
            self.assertEqual(expected, status, errors)
            self.assertTrue(output.strip() and planned.startswith(output), output)
            self.assertIn('nova-compute of the host must be stopped', errors)
            self.assertEqual([remaining], self.uuids())

    def test_refusals(self):
        for arguments, reason in (
            ((self.old, self.new), 'stop nova-compute of the host, and add --yes.'),
            (('--yes', self.new, self.old), 'No resource provider has the name or the UUID'),
            (('--yes', 'compute-17', 'compute-18'), "'compute-18' is neither a UUID nor"),
        ):
            done = self.run_command('rename-uuid', *arguments)
            self.assertEqual(2, done.status)
            self.assertTrue(done.stderr.startswith('Error: '), done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
            self.assertEqual([self.old], self.uuids())
