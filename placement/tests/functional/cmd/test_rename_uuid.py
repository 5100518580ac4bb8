"""The command `placement-manage rename-uuid`."""

import os
import subprocess

import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.tests.functional.cmd import base

OLD = '4e8e5957-649f-477b-9e5b-f1f75b21c03c'
NEW = '9d2b1a7c-5f0e-4c39-8f53-0a7e6d1b2c48'
CHANGES = f"""\
compute-17 gets the UUID {NEW}. Nothing else changes.
provider compute-17: uuid {OLD} -> uuid {NEW}
"""
PLANNED = (
    f'{CHANGES}Nothing was changed. Stop nova-compute of the host. '
    f'Next: placement-manage rename-uuid {OLD} {NEW}\n'
)
CHANGED = f'{CHANGES}These rows were changed. Next: start nova-compute of the host.\n'
_PROVIDERS = models.resource_providers


class RenameTest(base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.execute(sa.insert(_PROVIDERS).values(uuid=OLD, name='compute-17'))
            conn.execute(sa.update(_PROVIDERS).values(root_provider_id=_PROVIDERS.c.id))

    def uuids(self) -> list[str]:
        with self.engine.connect() as conn:
            return list(conn.scalars(sa.select(_PROVIDERS.c.uuid)))

    def test_the_plan_and_the_change(self) -> None:
        done = self.run_command('rename-uuid', '--dry-run', OLD, NEW)
        self.assertEqual((0, PLANNED), (done.status, done.stdout + done.stderr))
        self.assertEqual([OLD], self.uuids())
        done = self.run_command('rename-uuid', '--yes', OLD, NEW)
        self.assertEqual((0, CHANGED), (done.status, done.stdout + done.stderr))
        self.assertEqual([NEW], self.uuids())

    def test_the_name_of_the_host(self):
        done = self.run_command('rename-uuid', '--dry-run', 'compute-17', NEW)
        self.assertEqual(0, done.status)
        self.assertTrue(PLANNED.startswith(done.stdout), done.stdout)
        following = f'Next: placement-manage rename-uuid compute-17 {NEW}\n'
        self.assertTrue(done.stderr.endswith(following), done.stderr)

    def answer(self, text: str) -> tuple[int, str, str]:
        """Answer the question on a terminal; return the exit status and the outputs."""
        terminal, end = os.openpty()
        with os.fdopen(terminal, 'wb'), os.fdopen(end) as stdin:
            os.write(terminal, text.encode())
            arguments = ('rename-uuid', OLD, NEW)
            process = self.start(*arguments, interrupted=False, stdin=stdin, stdout=subprocess.PIPE)
            status = process.wait()
        with process.stdout, process.stderr:
            return status, process.stdout.read().decode(), process.stderr.read().decode()

    def test_the_question_on_a_terminal(self):
        """The rows are printed before it; another answer than yes changes nothing."""
        for text, expected, remaining in (('no\n', 2, OLD), ('yes\n', 0, NEW)):
            status, output, errors = self.answer(text)
            self.assertEqual(expected, status, errors)
            self.assertTrue(output.strip() and PLANNED.startswith(output), output)
            self.assertIn('nova-compute of the host must be stopped', errors)
            self.assertEqual([remaining], self.uuids())

    def test_refusals(self):
        for arguments, reason in (
            ((OLD, NEW), 'stop nova-compute of the host, and add --yes.'),
            (('--yes', NEW, OLD), 'No resource provider has the name or the UUID'),
            (('--yes', 'compute-17', 'compute-18'), "'compute-18' is neither a UUID nor"),
        ):
            done = self.run_command('rename-uuid', *arguments)
            self.assertEqual(2, done.status)
            self.assertTrue(done.stderr.startswith('Error: '), done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
            self.assertEqual([OLD], self.uuids())
