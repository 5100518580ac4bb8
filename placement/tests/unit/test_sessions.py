"""What connections are set to, as far as no server is needed to see it."""

from oslotest import base
import sqlalchemy as sa

from placement.db import sessions


class SpareRollbacksTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        self.engine.connect().close()  # the dialect looks around first
        self.rollbacks = 0
        rollback = self.engine.dialect.do_rollback

        def counted(connection):
            self.rollbacks += 1
            rollback(connection)

        self.engine.dialect.do_rollback = counted
        sessions.spare_rollbacks(self.engine)

    def ask(self, conn):
        conn.execute(sa.select(1)).all()

    def test_none_after_a_commit(self):
        with self.engine.connect() as conn:
            self.ask(conn)
            conn.commit()
        self.assertEqual(0, self.rollbacks)

    def test_one_without_a_commit(self):
        for rounds in (1, 2):
            with self.engine.connect() as conn:
                self.ask(conn)
            self.assertEqual(rounds, self.rollbacks)

    def test_one_for_what_was_asked_after_a_commit(self):
        with self.engine.connect() as conn:
            self.ask(conn)
            conn.commit()
            self.ask(conn)
        self.assertEqual(1, self.rollbacks)

    def test_one_for_what_is_asked_by_the_next_user(self):
        with self.engine.begin() as conn:
            self.ask(conn)
        with self.engine.connect() as conn:
            self.ask(conn)
        self.assertEqual(1, self.rollbacks)
