"""Data migrations: batches, totals and exit statuses, with stub migrations."""

import io

import fixtures
from oslo_config import cfg
from oslotest import base

from placement import conf
from placement.cmd import db
from placement.objects import online_data_migrations


class StubMigration:
    """A migration of `rows` rows, and of `stuck` rows that it counts but cannot migrate."""

    def __init__(self, name: str, rows: int, stuck: int = 0):
        self.__name__ = name
        self.rows = rows
        self.stuck = stuck
        self.limits: list[int] = []

    def __call__(self, config: cfg.ConfigOpts, max_count: int) -> online_data_migrations.Outcome:
        self.limits.append(max_count)
        found = min(self.rows + self.stuck, max_count)
        done = min(self.rows, max_count)
        self.rows -= done
        return online_data_migrations.Outcome(found, done)


def broken(config: cfg.ConfigOpts, max_count: int) -> online_data_migrations.Outcome:
    raise ValueError('the reason\nin two lines')


class MigrateDataTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.output = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.output))

    def migrate(
        self, *migrations: online_data_migrations.DataMigration, max_count: int | None = None
    ) -> int:
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        return db.migrate_data(config, migrations, max_count)

    def rows(self) -> list[list[str]]:
        """Return the rows of the printed table."""
        lines = [line for line in self.output.getvalue().splitlines() if line.startswith('|')]
        table = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
        self.assertEqual(['Migration', 'Total Found', 'Completed'], table[0])
        return table[1:]

    def test_nothing_to_do(self):
        self.assertEqual(db.DONE, self.migrate(StubMigration('a', 0), StubMigration('b', 0)))
        self.assertEqual([['a', '0', '0'], ['b', '0', '0']], self.rows())
        self.assertNotIn('matched', self.output.getvalue())

    def test_batches_until_all_is_done(self):
        first, second = StubMigration('a', 120), StubMigration('b', 20)

        self.assertEqual(db.DONE, self.migrate(first, second))
        self.assertEqual([['a', '120', '120'], ['b', '20', '20']], self.rows())
        self.assertEqual([50, 50, 50, 50], first.limits)
        self.assertIn('50 rows matched query a, 50 migrated', self.output.getvalue())

    def test_the_limit_applies_to_the_sum_of_all_migrations(self):
        first, second = StubMigration('a', 2), StubMigration('b', 5)

        self.assertEqual(db.MORE_TO_DO, self.migrate(first, second, max_count=3))
        self.assertEqual([['a', '2', '2'], ['b', '1', '1']], self.rows())
        self.assertEqual([1], second.limits)

    def test_migrations_after_the_limit_are_not_executed(self):
        second = StubMigration('b', 5)

        self.assertEqual(db.MORE_TO_DO, self.migrate(StubMigration('a', 5), second, max_count=3))
        self.assertEqual([['a', '3', '3']], self.rows())
        self.assertEqual([], second.limits)

    def test_a_limit_without_rows(self):
        self.assertEqual(db.DONE, self.migrate(StubMigration('a', 0), max_count=3))

    def test_stuck_rows_do_not_repeat_the_batch(self):
        self.assertEqual(db.DONE, self.migrate(StubMigration('a', 0, stuck=4)))
        self.assertEqual([['a', '4', '0']], self.rows())

    def test_a_failure_does_not_stop_the_others(self):
        self.assertEqual(db.FAILED, self.migrate(broken, StubMigration('b', 60)))
        self.assertEqual([['broken', '0', '0'], ['b', '60', '60']], self.rows())
        self.assertIn('broken: the reason in two lines\n', self.output.getvalue())

    def test_a_failure_with_a_limit(self):
        self.assertEqual(db.MORE_TO_DO, self.migrate(broken, StubMigration('b', 1), max_count=3))
        self.assertEqual(db.FAILED, self.migrate(broken, StubMigration('b', 0), max_count=3))
