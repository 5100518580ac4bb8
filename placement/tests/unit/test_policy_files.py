"""Policy files that change while the service runs, and those that cannot be used."""

from concurrent import futures
import logging
import pathlib
import threading
from unittest import mock

import fixtures
from oslo_context import context

from placement import exception, permissions, policy
from placement.tests.unit import test_policy

SHOW = 'placement:traits:show'
OLD = f'"{SHOW}": "role:old"\n'
NEW = f'"{SHOW}": "role:new"\n'
REPORT = 'ERROR The previous policy rules stay in force.'
# The kind of mistake, the content of the file, and a part of the message.
MISTAKES = {
    'syntax': (b'a: "1"\nb: c: d\n', 'line 2'),
    'a list': (b'- admin_api\n', 'does not map'),
    'a number as an expression': (f'"{SHOW}": 1\n'.encode(), SHOW),
    'false as an expression': (f'"{SHOW}": false\n'.encode(), SHOW),
    'a list of numbers': (f'"{SHOW}": [1]\n'.encode(), SHOW),
    'not UTF-8': (b'"a": "role:a"\n"b": "role:\xff"\n', 'line 2 is not UTF-8'),
    'an impossible date': (b'"a": 2026-99-99\n', 'month'),
    'a deep document': (b'[' * 1000, 'recursion'),
    'a rule that refers to itself': (b'"a": "role:b or rule:a"\n', 'cycle: a'),
    'a negated cycle': (b'"a": "not rule:b"\n"b": "rule:a"\n', 'cycle: a, b'),
    'a cycle through the default rule': (b'"default": "rule:missing"\n', 'cycle: default'),
}


class FilesTestCase(test_policy.PolicyTestCase):
    def setUp(self):
        super().setUp()
        self.capture_log()
        self.usable = self.useFixture(fixtures.MockPatch('placement.telemetry.policy_usable')).mock
        self.clock = mock.Mock(**{'monotonic.return_value': 1000.0})
        self.useFixture(fixtures.MonkeyPatch('placement.permissions.time', self.clock))
        self.rules = self.directory / 'policy.d'
        self.rules.mkdir()
        self.policy_file.write_text(OLD)
        policy.init(self.configure(policy_dirs=[str(self.rules)]))

    def capture_log(self) -> None:
        self.log = self.useFixture(
            fixtures.FakeLogger(
                'placement.policy', logging.INFO, format='%(levelname)s %(message)s'
            )
        )

    def permits(self, role: str) -> bool:
        """Return whether the role may perform the operation, after the files were looked at."""
        self.clock.monotonic.return_value += 1
        caller = context.RequestContext(user_id='user', project_id='project', roles=[role])
        return policy.authorize(caller, SHOW, {}, do_raise=False)

    def assertKept(self, fragment: str) -> None:
        for _ in range(5):
            self.assertTrue(self.permits('old'))
            self.assertFalse(self.permits('new'))
        self.assertEqual(1, self.log.output.count(REPORT))
        self.assertIn(fragment, self.log.output)
        self.assertIn(fragment, policy.problem())
        self.usable.assert_called_with(False)

    def replace(self, path: pathlib.Path, content: bytes) -> None:
        new = self.directory / 'new'
        new.write_bytes(content)
        new.rename(path)


class MistakesTest(FilesTestCase):
    def check(self, path: pathlib.Path, content: bytes, fragment: str) -> None:
        self.replace(path, content)
        self.assertKept(fragment)
        self.assertIn(str(path), policy.problem())
        # It is reported again after ten minutes.
        self.clock.monotonic.return_value += policy.REPORT_SECONDS
        self.permits('old')
        self.permits('old')
        self.assertEqual(2, self.log.output.count(REPORT))
        # The mended file takes effect.
        self.replace(path, NEW.encode())
        self.assertTrue(self.permits('new'))
        self.assertFalse(self.permits('old'))
        self.assertIsNone(policy.problem())
        self.assertIn('the new rules are in force', self.log.output)
        self.usable.assert_called_with(True)
        self.assertEqual(2, self.log.output.count(REPORT))

    def test_mistakes(self):
        for kind, (content, fragment) in MISTAKES.items():
            with self.subTest(kind):
                self.restart()
                self.check(self.policy_file, content, fragment)

    def test_mistakes_in_a_directory(self):
        for kind, (content, fragment) in MISTAKES.items():
            with self.subTest(kind):
                self.restart()
                self.check(self.rules / 'a.yaml', content, fragment)
                (self.rules / 'a.yaml').unlink()

    def test_the_service_does_not_start_with_them(self):
        for kind, (content, fragment) in MISTAKES.items():
            with self.subTest(kind):
                self.replace(self.policy_file, content)
                policy.reset()
                error = self.assertRaises(
                    exception.InvalidPolicyFile, policy.init, self.configure()
                )
                self.assertIn(fragment, str(error))
                self.assertIn(str(self.policy_file), str(error))

    def restart(self) -> None:
        self.replace(self.policy_file, OLD.encode())
        self.capture_log()
        policy.reset()
        policy.init(self.configure(policy_dirs=[str(self.rules)]))


class MissingTest(FilesTestCase):
    def test_the_file_vanishes(self):
        self.policy_file.unlink()
        self.assertKept('does not exist any more')
        self.replace(self.policy_file, NEW.encode())
        self.assertTrue(self.permits('new'))

    def test_a_directory_in_place_of_the_file(self):
        self.policy_file.unlink()
        self.policy_file.mkdir()
        self.assertKept('Is a directory')

    def test_a_file_in_place_of_the_directory(self):
        self.rules.rmdir()
        self.rules.write_text('')
        self.assertKept(f'The policy file {self.rules} is not usable')

    def test_a_link_to_nothing(self):
        (self.rules / 'a.yaml').symlink_to('nothing')
        self.assertKept(f'The policy file {self.rules}/a.yaml is not usable: No such file')

    def test_a_file_of_the_directory_can_be_removed(self):
        (self.rules / 'a.yaml').write_text(NEW)
        self.assertTrue(self.permits('new'))
        (self.rules / 'a.yaml').unlink()
        self.assertTrue(self.permits('old'))
        self.assertIsNone(policy.problem())

    def test_a_file_that_is_created_later(self):
        self.policy_file.unlink()
        policy.reset()
        policy.init(self.configure(policy_dirs=[]))
        self.assertTrue(self.permits('admin'))
        self.policy_file.write_text(NEW)
        self.assertTrue(self.permits('new'))

    def test_a_file_that_vanishes_while_it_is_read(self):
        """oslo.policy would use the default rules."""
        self.replace(self.policy_file, NEW.encode())
        create = policy._new_enforcer

        def vanish(*args):
            self.policy_file.unlink()
            return create(*args)

        with mock.patch.object(policy, '_new_enforcer', vanish):
            self.assertFalse(self.permits('admin'))
        self.assertFalse(self.permits('admin'))
        self.assertKept('does not exist any more')


class ExpressionsTest(FilesTestCase):
    def test_expressions_that_fail_deny(self):
        for number, text in enumerate((
            'role:%(project_id',
            'role:%(project_id)d',
            'user_id.name:%(user_id)s',
            'http://server/%(project_id',
            'http://server/%z',
            'class:gold',
            'user_id.:gold',
            '3x:gold',
        )):  # fmt: skip
            self.replace(self.policy_file, f'"{SHOW}": "{text}"\n'.encode())
            self.clock.monotonic.return_value += 1
            caller = context.RequestContext(user_id='user', project_id='project', roles=['admin'])
            target = {'project_id': 'project', 'user_id': 'user'}
            self.assertRaises(exception.PolicyNotAuthorized, policy.authorize, caller, SHOW, target)
            self.assertFalse(policy.authorize(caller, SHOW, target, do_raise=False))
            self.assertEqual(2 * (number + 1), self.log.output.count('cannot be evaluated'), text)

    def test_unknown_references_and_invalid_expressions_deny(self):
        for text in ('rule:missing', 'role:admin or', 'and'):
            self.replace(self.policy_file, f'"{SHOW}": "{text}"\n'.encode())
            self.assertFalse(self.permits('admin'))
            self.assertIsNone(policy.problem())


class ThreadsTest(test_policy.PolicyTestCase):
    def test_requests_while_files_change(self):
        """Each file permits an operation to the role old, and to no other one."""
        self.useFixture(fixtures.MockPatchObject(permissions, 'REMEMBERED_SECONDS', 0.0))
        self.useFixture(fixtures.FakeLogger('placement.policy'))
        self.policy_file.write_text(OLD)
        policy.init(self.configure(policy_dirs=[]))
        end = threading.Event()

        def send() -> set[tuple[str, bool]]:
            results = set()
            while not end.is_set():
                for role in ('old', 'admin', 'service'):
                    caller = context.RequestContext(project_id='project', roles=[role])
                    granted = policy.authorize(caller, SHOW, {}, do_raise=False)
                    results.add((role, granted))
            return results

        with futures.ThreadPoolExecutor(4) as threads:
            results = [threads.submit(send) for _ in range(4)]
            for number in range(100):
                if number % 4 == 3:
                    self.policy_file.unlink()
                else:
                    new = self.directory / 'new'
                    new.write_text(OLD + ('a: b: c' if number % 2 else f'a: role:r{number}\n'))
                    new.rename(self.policy_file)
                policy.problem()
            end.set()
        expected = {('old', True), ('admin', False), ('service', False)}
        self.assertEqual([expected] * 4, [result.result() for result in results])
