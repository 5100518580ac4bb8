"""The connection settings that can be tested without a database server."""

from oslotest import base
import sqlalchemy as sa

from placement.db import connections


class SkipRollbackAfterCommitTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        self.engine.connect().close()  # the dialect reads the version first
        self.rollbacks = 0
        rollback = self.engine.dialect.do_rollback

        def counted(connection):
            self.rollbacks += 1
            rollback(connection)

        self.engine.dialect.do_rollback = counted
        connections.skip_rollback_after_commit(self.engine)

    def read(self, conn):
        conn.execute(sa.select(1)).all()

    def test_no_rollback_after_a_commit(self):
        with self.engine.connect() as conn:
            self.read(conn)
            conn.commit()
        self.assertEqual(0, self.rollbacks)

    def test_rollback_without_a_commit(self):
        for rounds in (1, 2):
            with self.engine.connect() as conn:
                self.read(conn)
            self.assertEqual(rounds, self.rollbacks)

    def test_rollback_of_a_statement_after_a_commit(self):
        with self.engine.connect() as conn:
            self.read(conn)
            conn.commit()
            self.read(conn)
        self.assertEqual(1, self.rollbacks)

    def test_rollback_of_the_next_transaction(self):
        with self.engine.begin() as conn:
            self.read(conn)
        with self.engine.connect() as conn:
            self.read(conn)
        self.assertEqual(1, self.rollbacks)
