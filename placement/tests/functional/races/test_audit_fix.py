"""`placement-manage audit --fix` corrects damaged data while clients write the same rows."""

from concurrent import futures
import random
import threading
import uuid

import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.admin import audit
from placement.admin.audit import model, run
from placement.db.sqlalchemy import models
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim, claim_1_27
from placement.tests.waiting import LONGEST

CLIENTS = 16
CALLS = 320
GONE = 9_000_001


class AuditFixTest(testcase.RaceTestCase):
    """Clients claim, release and move, while one thread corrects the data again and again."""

    def setUp(self):
        super().setUp()
        self.random = random.Random(12)
        self.hosts = [self.make_provider({'VCPU': 1000}) for _ in range(3)]
        self.nodes = [self.make_provider({'VCPU': 1000}, parent) for parent in self.hosts * 2]
        self.consumers = [str(uuid.UUID(int=number)) for number in range(1, 25)]
        for consumer in self.consumers:
            self.send_ok('PUT', f'/allocations/{consumer}', claim({self.hosts[0]: 1}))

    def test_the_data_is_sound_after_the_storm(self):
        self.over = threading.Event()
        with futures.ThreadPoolExecutor(1) as pool:
            self.correcting = pool.submit(self.damage_and_correct)
            try:
                self.race([self.request() for _ in range(CALLS)], CLIENTS)
            finally:
                self.over.set()
        self.correcting.result()

    def damage_and_correct(self):
        """Damage and correct data until the clients have ended, but at least twice."""
        rounds = 0
        while rounds < 2 or not self.over.is_set():
            rounds += 1
            self.damage()
            self.repair()

    def audit(self, may_exceed=False):
        """Correct what the clients wrote last, and check that the data is sound."""
        self.over.set()
        self.correcting.result(LONGEST)
        self.repair()
        with db_api.snapshot() as conn:
            left = [one for one in audit.findings(conn) if one.severity == model.ERROR]
        self.assertEqual([], left)
        super().audit(may_exceed)

    def repair(self):
        return run.run(self.config, run.Options(fix=True))

    def damage(self):
        """Damage rows that the clients write."""
        chosen = self.random.sample(self.consumers, 9)
        unrecorded, orphaned, idle = chosen[:3], chosen[3:5], chosen[5:]
        rootless, misled = self.random.sample(self.nodes, 2)
        consumers, providers = models.consumers, models.resource_providers

        def work(conn):
            self.lock(conn, consumers, *chosen)
            conn.execute(sa.delete(consumers).where(consumers.c.uuid.in_(unrecorded)))
            self.insert_consumers(conn, *orphaned, *idle)
            row = {'resource_provider_id': GONE, 'resource_class_id': 0, 'used': 1}
            rows = [{'consumer_id': orphan, **row} for orphan in orphaned]
            conn.execute(sa.insert(models.allocations), rows)
            self.lock(conn, providers, rootless, misled)
            root = sa.select(providers.c.id).where(providers.c.uuid == self.hosts[2])
            for uuid_, value in ((rootless, None), (misled, conn.scalar(root))):
                one = sa.update(providers).where(providers.c.uuid == uuid_)
                conn.execute(one.values(root_provider_id=value))

        db_api.write(work)

    def lock(self, conn, table, *uuids):
        select = sa.select(table.c.uuid).where(table.c.uuid.in_(sorted(uuids)))
        conn.execute(select.order_by(table.c.uuid).with_for_update()).all()

    def insert_consumers(self, conn, *uuids):
        """Insert the consumers that do not exist."""
        table = models.consumers
        stored = set(conn.scalars(sa.select(table.c.uuid).where(table.c.uuid.in_(uuids))))
        owner = {
            'project_id': conn.scalar(sa.select(models.projects.c.id).limit(1)),
            'user_id': conn.scalar(sa.select(models.users.c.id).limit(1)),
            'generation': 3,
        }
        rows = [{'uuid': uuid_, **owner} for uuid_ in sorted(uuids) if uuid_ not in stored]
        if rows:
            conn.execute(sa.insert(table), rows)

    def request(self):
        """A random request that a client sends."""
        consumer = self.random.choice(self.consumers)
        host = self.random.choice(self.hosts)
        node = self.random.choice(self.nodes)
        amount = self.random.randint(1, 3)
        path = f'/allocations/{consumer}'
        fresh = str(uuid.uuid4())
        exchange = {consumer: claim_1_27({}), fresh: claim_1_27({host: amount})}
        moved = {'name': f'provider-{node}', 'parent_provider_uuid': host}
        child = {'name': fresh, 'parent_provider_uuid': node}
        return self.call(
            *self.random.choice(
                [
                    ('PUT', path, claim_1_27({host: amount, node: amount}), '1.27'),
                    ('PUT', path, claim({host: amount}, 3)),
                    ('PUT', path, claim({host: amount})),
                    ('DELETE', path),
                    ('POST', '/allocations', exchange, '1.27'),
                    ('PUT', f'/resource_providers/{node}', moved),
                    ('POST', '/resource_providers', child),
                    ('DELETE', f'/resource_providers/{node}'),
                ]
            )
        )


class SmallBatchesTest(AuditFixTest):
    """The same with several transactions for each kind of finding."""

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, run, 'BATCH', run.BATCH)
        run.BATCH = 1


class SqliteFileTest(testcase.SqliteFileTestCase, AuditFixTest):
    """The same with transactions that SQLite serializes, not this process."""


class OpenTransactionTest(testcase.RaceTestCase):
    """A request has written, but has not committed, when the correction starts."""

    def setUp(self):
        super().setUp()
        self.host = self.make_provider({'VCPU': 10})
        self.consumer = str(uuid.uuid4())
        self.path = f'/allocations/{self.consumer}'
        self.send_ok('PUT', self.path, claim({self.host: 1}))

    def column(self, column, uuid_):
        with db_api.snapshot() as conn:
            return conn.scalar(sa.select(column).where(column.table.c.uuid == uuid_))

    def correct_during(self, request, text, damage):
        """Damage rows; start a correction after a statement of a request; return the findings.

        :param text: a part of the statement
        """
        db_api.write(lambda conn: conn.execute(damage))
        corrections, engine = [], db_api.get_placement_engine()

        def interrupt(conn, cursor, statement, *_):
            if text in statement and not corrections:
                options = run.Options(fix=True)
                corrections.append(testcase.start(lambda: run.run(self.config, options)))
                # The correction would end within this time, if it did not wait for a lock.
                futures.wait(corrections, 0.5)
                self.assertFalse(corrections[0].done())

        event.listen(engine, 'after_cursor_execute', interrupt)
        try:
            response = request()
        finally:
            event.remove(engine, 'after_cursor_execute', interrupt)
        self.assertLess(response.status, 300, response.body)
        findings = corrections[0].result(LONGEST)
        self.audit()
        return findings

    def test_an_idle_consumer_gets_allocations(self):
        request = self.call('PUT', self.path, claim({self.host: 2}, 1))
        damage = sa.delete(models.allocations)
        self.assertEqual((), self.correct_during(request, 'INSERT INTO allocations', damage))
        self.assertEqual(2, self.column(models.consumers.c.generation, self.consumer))

    def test_the_allocations_of_a_missing_consumer_are_released(self):
        release = self.call('DELETE', self.path)
        self.correct_during(release, 'DELETE FROM allocations', sa.delete(models.consumers))
        self.assertIsNone(self.column(models.consumers.c.generation, self.consumer))

    def test_the_parent_of_a_provider_with_a_wrong_root_moves(self):
        other, third = self.make_provider(), self.make_provider()
        node = self.make_provider(parent=self.host)
        leaf = self.make_provider(parent=node)
        providers = models.resource_providers
        damage = sa.update(providers).where(providers.c.uuid == leaf)
        damage = damage.values(root_provider_id=self.column(providers.c.id, third))
        body = {'name': f'provider-{node}', 'parent_provider_uuid': other}
        request = self.call('PUT', f'/resource_providers/{node}', body)
        (finding,) = self.correct_during(request, 'UPDATE resource_providers', damage)
        root = self.column(providers.c.id, other)
        self.assertEqual([root], [row['after']['root_provider_id'] for row in finding.rows])
        self.assertEqual(root, self.column(providers.c.root_provider_id, leaf))
