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

    def __call__(self, config: cfg.ConfigOpts, max_count: int) -> online_data_migrations.Outcome:
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
        """Return the rows of the printed table, and forget the output."""
        lines = [line for line in self.output.getvalue().splitlines() if line.startswith('|')]
        table = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
        self.output.seek(self.output.truncate(0))
        self.assertEqual(['Migration', 'Total Found', 'Completed'], table[0])
        return table[1:]

    def test_batches_and_limits(self):
        """The limit applies to the sum; a migration after it is not executed."""
        for (first, stuck), second, limit, status, rows in (
            ((0, 0), 0, None, db.DONE, [['a', '0', '0'], ['b', '0', '0']]),
            ((120, 0), 20, None, db.DONE, [['a', '120', '120'], ['b', '20', '20']]),
            # Rows that cannot be migrated do not repeat the batch.
            ((0, 4), 0, None, db.DONE, [['a', '4', '0'], ['b', '0', '0']]),
            ((0, 0), 0, 3, db.DONE, [['a', '0', '0'], ['b', '0', '0']]),
            ((2, 0), 5, 3, db.MORE_TO_DO, [['a', '2', '2'], ['b', '1', '1']]),
            ((5, 0), 5, 3, db.MORE_TO_DO, [['a', '3', '3']]),
        ):
            migrations = StubMigration('a', first, stuck), StubMigration('b', second)
            self.assertEqual(status, self.migrate(*migrations, max_count=limit))
            self.assertEqual(rows, self.rows())

    def test_a_failure_does_not_stop_the_others(self):
        self.assertEqual(db.FAILED, self.migrate(broken, StubMigration('b', 60)))
        self.assertIn('broken: the reason in two lines\n', self.output.getvalue())
        self.assertIn('50 rows matched query b, 50 migrated', self.output.getvalue())
        self.assertEqual([['broken', '0', '0'], ['b', '60', '60']], self.rows())
        self.assertEqual(db.MORE_TO_DO, self.migrate(broken, StubMigration('b', 1), max_count=3))
        self.assertEqual(db.FAILED, self.migrate(broken, StubMigration('b', 0), max_count=3))
