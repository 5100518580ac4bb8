"""Upgrades on a cluster, where no lock excludes processes on other nodes."""

from collections.abc import Callable
from unittest import mock

from oslotest import base
import pymysql

from placement.db.sqlalchemy import migration


class Clock:
    """A clock that only `sleep()` advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 2000, 'the upgrade does not give up'


class UpgradeOnClusterTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.version = migration.revisions()[-1]
        self.attempts = 0
        for name, value in (
            ('time', self.clock),
            ('version', lambda: self.version),
            ('_on_cluster', lambda: True),
        ):
            patch = mock.patch.object(migration, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def upgrade(self, attempt: Callable[[int], None]) -> None:
        """Upgrade to the newest revision with a function that is called with each attempt."""

        def counted(configuration, revision):
            self.attempts += 1
            attempt(self.attempts)

        with mock.patch.object(migration, '_upgrade', counted):
            migration.upgrade()

    def test_the_first_attempt_succeeds(self):
        self.upgrade(lambda attempt: None)
        self.assertEqual((1, 1000.0), (self.attempts, self.clock.now))

    def test_another_process_completes_the_upgrade(self):
        def attempt(number: int) -> None:
            if number == 3:
                self.version = migration.revisions()[0]
            raise KeyError('table exists')

        self.upgrade(attempt)
        self.assertEqual(3, self.attempts)

    def test_a_failed_attempt_is_retried(self):
        def attempt(number: int) -> None:
            if number < 4:
                raise KeyError('table exists')

        self.upgrade(attempt)
        self.assertEqual(4, self.attempts)
        self.assertEqual(3 * migration._PAUSE_SECONDS, self.clock.now - 1000)

    def test_a_failure_without_progress_raises(self):
        def attempt(number: int) -> None:
            raise KeyError(f'attempt {number}')

        error = self.assertRaises(KeyError, self.upgrade, attempt)
        self.assertEqual(f'attempt {self.attempts}', error.args[0])
        elapsed = self.clock.now - 1000
        self.assertLess(migration._STALL_SECONDS, elapsed)
        self.assertLessEqual(elapsed, migration._STALL_SECONDS + migration._PAUSE_SECONDS)

    def test_progress_of_another_process_extends_the_wait(self):
        """Each new revision starts the time without progress again."""

        def attempt(number: int) -> None:
            if self.clock.now >= 1000 + migration._STALL_SECONDS * 0.9:
                self.version = 'second'
            raise KeyError('table exists')

        self.assertRaises(KeyError, self.upgrade, attempt)
        self.assertGreater(self.clock.now - 1000, migration._STALL_SECONDS * 1.9)

    def test_data_that_a_revision_does_not_allow_raises_at_once(self):
        def attempt(number: int) -> None:
            raise RuntimeError('run placement-manage db online_data_migrations')

        self.assertRaises(RuntimeError, self.upgrade, attempt)
        self.assertEqual(1, self.attempts)

    def test_a_user_without_the_privileges_raises_at_once(self):
        def attempt(number: int) -> None:
            raise pymysql.err.OperationalError(1142, 'CREATE command denied to user')

        self.assertRaises(pymysql.err.OperationalError, self.upgrade, attempt)
        self.assertEqual(1, self.attempts)
