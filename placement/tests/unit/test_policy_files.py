"""Policy files that change while the service runs, and those that cannot be used."""

from concurrent import futures
import logging
import pathlib
import threading
from unittest import mock

import fixtures
from oslo_context import context
from oslo_policy import policy as oslo_policy

from placement import exception, policy
from placement.tests.unit import test_policy
from placement.tests.unit.telemetry.switched_on import SwitchedOn
from placement.tests.unit.test_policy import SHOW

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
    'not UTF-8': (b'"a": "role:a"\n"b": "role:\xff"\n', "can't decode byte 0xff"),
    'an impossible date': (b'"a": 2026-99-99\n', 'month'),
    'a deep document': (b'[' * 1000, 'recursion'),
}


class FilesTestCase(test_policy.PolicyTestCase):
    def setUp(self):
        super().setUp()
        self.metrics = self.useFixture(SwitchedOn())
        self.clock = self.useFixture(test_policy.MemoryClock())
        self.rules = self.directory / 'policy.d'
        self.rules.mkdir()
        self.start()

    def start(self, content: str = OLD) -> None:
        """Start the service with a policy file."""
        self.log = self.useFixture(
            fixtures.FakeLogger(
                'placement.policy', logging.INFO, format='%(levelname)s %(message)s'
            )
        )
        self.replace(self.policy_file, content)
        self.restart(policy_dirs=[str(self.rules)])

    def role_permits(self, role: str) -> bool:
        """Return whether the role may perform the operation, after the files were looked at."""
        self.clock.advance(1)
        return self.permits(SHOW, roles=[role])

    def unusable(self) -> float | None:
        return self.metrics.value('placement_policy_file_unusable')

    def assert_kept(self, fragment: str) -> None:
        for _ in range(5):
            self.assertTrue(self.role_permits('old'))
            self.assertFalse(self.role_permits('new'))
        self.assertEqual(1, self.log.output.count(REPORT))
        self.assertIn(fragment, self.log.output)
        self.assertIn(fragment, policy.problem())
        self.assertEqual(1, self.unusable())


class MistakesTest(FilesTestCase):
    def check(self, path: pathlib.Path, content: bytes, fragment: str) -> None:
        self.replace(path, content)
        self.assert_kept(fragment)
        self.assertIn(str(path), policy.problem())
        # The mended file takes effect.
        self.replace(path, NEW)
        self.assertTrue(self.role_permits('new'))
        self.assertFalse(self.role_permits('old'))
        self.assertIsNone(policy.problem())
        self.assertIn('the new rules are in force', self.log.output)
        self.assertEqual(0, self.unusable())

    def test_mistakes(self):
        for kind, (content, fragment) in MISTAKES.items():
            for path in (self.policy_file, self.rules / 'a.yaml'):
                with self.subTest(kind, path=path):
                    self.start()
                    self.check(path, content, fragment)
            path.unlink()

    def test_the_service_does_not_start_with_them(self):
        for kind, (content, fragment) in MISTAKES.items():
            with self.subTest(kind):
                error = self.assertRaises(exception.InvalidPolicyFile, self.start, content)
                self.assertIn(fragment, str(error))
                self.assertIn(str(self.policy_file), str(error))


class MissingTest(FilesTestCase):
    def test_the_file_vanishes(self):
        """The permissions of a removed file end. Another file does not hide that it is gone."""
        (self.rules / 'a.yaml').write_text('"a": "role:a"\n')
        self.assertTrue(self.role_permits('old'))
        self.policy_file.unlink()
        for role, expected in (('old', False), ('new', False), ('admin', True)):
            self.assertEqual(expected, self.role_permits(role), role)
        self.assertEqual(1, self.log.output.count(f'WARNING The policy file {self.policy_file} '))
        self.assertIsNone(policy.problem())
        self.replace(self.policy_file, NEW)
        self.assertTrue(self.role_permits('new'))
        self.assertFalse(self.role_permits('admin'))

    def test_a_file_that_was_not_usable_vanishes(self):
        self.replace(self.policy_file, 'a: b: c')
        self.assertTrue(self.role_permits('old'))
        self.policy_file.unlink()
        self.assertFalse(self.role_permits('old'))
        self.assertTrue(self.role_permits('admin'))
        self.assertEqual(0, self.unusable())

    def test_a_directory_in_place_of_the_file(self):
        self.policy_file.unlink()
        self.policy_file.mkdir()
        self.assert_kept('Is a directory')

    def test_a_file_in_place_of_the_directory(self):
        self.rules.rmdir()
        self.rules.write_text('')
        self.assert_kept(f'The policy file {self.rules} is not usable')

    def test_a_link_to_nothing(self):
        (self.rules / 'a.yaml').symlink_to('nothing')
        self.assert_kept(f'The policy file {self.rules}/a.yaml is not usable: [Errno 2] No such')

    def test_a_file_of_the_directory_can_be_removed(self):
        (self.rules / 'a.yaml').write_text(NEW)
        self.assertTrue(self.role_permits('new'))
        (self.rules / 'a.yaml').unlink()
        self.assertTrue(self.role_permits('old'))
        self.assertIsNone(policy.problem())

    def test_hidden_files_and_subdirectories_have_no_effect(self):
        (self.rules / '.hidden.yaml').write_text('a: b: c')
        (self.rules / 'directory').mkdir()
        (self.rules / 'a.yaml').write_text(NEW)
        self.assertTrue(self.role_permits('new'))
        self.assertIsNone(policy.problem())

    def test_a_file_that_is_created_later(self):
        self.policy_file.unlink()
        self.restart(policy_dirs=[])
        self.assertTrue(self.role_permits('admin'))
        self.policy_file.write_text(NEW)
        self.assertTrue(self.role_permits('new'))

    def test_a_file_that_is_replaced_by_an_older_one(self):
        """For example, the operator restores a copy."""
        self.policy_file.rename(self.directory / 'copy')
        self.policy_file.write_text(NEW)
        self.assertTrue(self.role_permits('new'))
        (self.directory / 'copy').rename(self.policy_file)
        self.assertTrue(self.role_permits('old'))

    def test_a_file_that_becomes_faulty_while_it_is_read(self):
        """oslo.policy would permit the operation for everyone."""
        self.replace(self.policy_file, NEW)
        load = oslo_policy.Enforcer.load_rules

        def spoil(*args):
            self.replace(self.policy_file, f'"{SHOW}": false\n')
            return load(*args)

        with mock.patch.object(oslo_policy.Enforcer, 'load_rules', spoil):
            self.assertFalse(self.role_permits('new'))
        self.assert_kept(SHOW)


class WithoutRequestsTest(FilesTestCase):
    def test_the_health_check_looks_at_the_files(self):
        for content, is_usable in (('a: b: c', False), (NEW, True)):
            self.replace(self.policy_file, content)
            self.clock.advance(1)
            self.assertEqual(is_usable, policy.problem() is None, content)


class ClockTest(FilesTestCase):
    def test_the_files_are_looked_at_once_a_second(self):
        """A look takes as long as several checks."""
        for content, before, after in ((NEW, 'old', 'new'), (OLD, 'new', 'old')):
            self.replace(self.policy_file, content)
            self.assertTrue(self.permits(SHOW, roles=[before]))
            self.assertFalse(self.permits(SHOW, roles=[after]))
            self.assertTrue(self.role_permits(after))


class ExpressionsTest(FilesTestCase):
    def test_expressions_that_fail_deny(self):
        target = {'project_id': 'project', 'user_id': 'user'}
        for text, failures in (
            ('role:%(project_id', 2),
            ('role:%(project_id)d', 2),
            ('user_id.name:%(user_id)s', 2),
            ('http://server/%(project_id', 2),
            ('http://server/%z', 2),
            ('class:gold', 2),
            ('user_id.:gold', 2),
            ('3x:gold', 2),
            (f'role:other or rule:{SHOW}', 2),
            ('not rule:b"\n"b": "rule:b', 2),
            ('rule:missing', 0),
            ('rule:missing"\n"default": "rule:absent', 2),
            ('role:admin or', 0),
            ('and', 0),
        ):
            with self.subTest(text):
                self.start(f'"{SHOW}": "{text}"\n')
                self.assertFalse(self.permits(SHOW, target))
                caller = context.RequestContext(roles=['admin'], project_id='project')
                self.assertRaises(
                    exception.PolicyNotAuthorized, policy.authorize, caller, SHOW, target
                )
                self.assertEqual(failures, self.log.output.count('cannot be evaluated'))
                self.assertIsNone(policy.problem())

    def test_lists_are_alternatives_of_conditions(self):
        """The old form of an expression, which oslo.policy still accepts."""
        self.start(f'"{SHOW}": [["role:old", "role:and"], ["role:new"], "role:text"]\n')
        for roles, expected in (
            (['old'], False),
            (['old', 'and'], True),
            (['new'], True),
            (['text'], True),
        ):
            self.assertEqual(expected, self.permits(SHOW, roles=roles), roles)
        self.start(f'"{SHOW}": []\n')
        self.assertTrue(self.permits(SHOW, roles=['none']))


class ThreadsTest(test_policy.PolicyTestCase):
    def test_requests_while_files_change(self):
        """Each file permits an operation to the role old, and to no other one."""
        self.useFixture(fixtures.FakeLogger('placement.policy'))
        self.useFixture(fixtures.FakeLogger('oslo_policy.policy', logging.INFO))
        # At each look at the clock, a second has passed.
        ticks = iter(range(10**9))
        self.useFixture(fixtures.MonkeyPatch('time.monotonic', lambda: next(ticks)))
        self.policy_file.write_text(OLD)
        policy.init(self.configure(policy_dirs=[]))
        end = threading.Event()

        def send() -> set[tuple[str, bool]]:
            results = set()
            while not end.is_set():
                for role in ('old', 'admin', 'service'):
                    results.add((role, self.permits(SHOW, roles=[role])))
            return results

        with futures.ThreadPoolExecutor(4) as threads:
            results = [threads.submit(send) for _ in range(4)]
            for number in range(100):
                text = 'a: b: c' if number % 2 else f'a: role:r{number}\n'
                self.replace(self.policy_file, OLD + text)
                policy.problem()
            end.set()
        expected = {('old', True), ('admin', False), ('service', False)}
        self.assertEqual([expected] * 4, [result.result() for result in results])
