"""The pool prefers a connection in the requested mode, and keeps its limits."""

import contextlib
from typing import Any
from unittest import mock

from oslotest import base
import sqlalchemy as sa
from sqlalchemy import event

from placement.db import mode_pool, transactions
from placement.db.transactions import Mode


class ModePoolTest(base.BaseTestCase):
    def make_pool(self, size: int, overflow: int) -> None:
        self.opened = 0
        # The statements that set the mode of a connection.
        self.statements: list[str] = []
        self.pool = mode_pool.ModePool(
            self.open, pool_size=size, max_overflow=overflow, timeout=0.01
        )
        event.listen(self.pool, 'connect', self.set_up)
        event.listen(self.pool, 'checkout', self.check_out)

    def open(self) -> mock.Mock:
        self.opened += 1
        connection = mock.Mock()
        connection.cursor.return_value.execute = self.statements.append
        return connection

    def set_up(self, connection: Any, record: Any) -> None:
        transactions.set_up_mysql(connection, record.info, 'tx_isolation')

    def check_out(self, connection: Any, record: Any, _proxy: Any) -> None:
        transactions.require_mysql_mode(connection, record.info)

    def connect(self, mode: Mode) -> Any:
        with transactions.Requesting(mode):
            return contextlib.closing(self.pool.connect())

    def test_each_mode_has_its_connection(self):
        self.make_pool(2, 0)
        for _ in range(3):
            for mode in Mode:
                with self.connect(mode):
                    pass
        self.assertEqual((2, 2), (self.opened, len(self.statements)))

    def test_a_full_pool_changes_the_mode_of_a_connection(self):
        self.make_pool(1, 0)
        for _ in range(3):
            for mode in Mode:
                with self.connect(mode):
                    pass
        self.assertEqual((1, 6), (self.opened, len(self.statements)))

    def test_an_idle_connection_in_the_mode_is_found_behind_others(self):
        self.make_pool(3, 0)
        writer, reader = Mode.TRANSACTION, Mode.AUTOCOMMIT
        with self.connect(writer), self.connect(writer), self.connect(reader):
            pass
        statements = len(self.statements)
        with self.connect(Mode.AUTOCOMMIT), self.connect(Mode.TRANSACTION):
            pass
        self.assertEqual((3, statements), (self.opened, len(self.statements)))

    def test_the_limit_applies_to_both_modes_together(self):
        self.make_pool(1, 1)
        with self.connect(Mode.AUTOCOMMIT), self.connect(Mode.TRANSACTION):
            for mode in Mode:
                self.assertRaises(sa.exc.TimeoutError, self.connect, mode)
        self.assertEqual((2, 1), (self.opened, self.pool.checkedin()))

    def test_a_failure_to_open_does_not_count(self):
        self.make_pool(1, 0)
        with mock.patch.object(self.pool, '_create_connection', side_effect=OSError('refused')):
            for _ in range(3):
                self.assertRaises(OSError, self.connect, Mode.AUTOCOMMIT)
        with self.connect(Mode.AUTOCOMMIT):
            self.assertEqual(1, self.opened)


class InstallTest(base.BaseTestCase):
    def test_the_limits_of_the_engine_are_kept(self):
        engine = sa.create_engine(
            'sqlite://',
            poolclass=sa.QueuePool,
            pool_size=3,
            max_overflow=4,
            pool_timeout=5,
            pool_recycle=6,
        )
        mode_pool.install(engine)
        engine.dispose()
        self.assertIsInstance(engine.pool, mode_pool.ModePool)
        self.assertEqual(
            (3, 4, 5, 6),
            (
                engine.pool.size(),
                engine.pool._max_overflow,
                engine.pool.timeout(),
                engine.pool._recycle,
            ),
        )
        with engine.connect() as conn:
            self.assertEqual(1, conn.scalar(sa.select(1)))

    def test_an_engine_without_a_pool_is_not_changed(self):
        engine = sa.create_engine('sqlite://', poolclass=sa.NullPool)
        mode_pool.install(engine)
        self.assertIsInstance(engine.pool, sa.NullPool)
