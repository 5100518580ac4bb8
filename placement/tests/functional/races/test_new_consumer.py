"""Claims of a new consumer that allocate from one provider (placement/claims/write.py)."""

from collections.abc import Callable, Iterator
import contextlib
from typing import Any
from unittest import mock
import uuid

import sqlalchemy as sa

from placement import db_api, errors
from placement.capacity import MAX_INT
from placement.claims import consumer_rows, judge, write
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.objects import generation
from placement.tests import where
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import Response, claim, claim_1_27
from placement.tests.waiting import LONGEST, wait_until

UNKNOWN = '00000000-0000-4000-8000-000000000000'


class NewConsumerTestCase(testcase.RaceTestCase):
    def put(self, body: dict[str, Any], consumer: str | None = None, version: str = 'latest'):
        return self.send('PUT', f'/allocations/{consumer or uuid.uuid4()}', body, version)

    def rows(self, statement: sa.Select[Any]) -> list[Any]:
        with db_engine.snapshot() as conn:
            return list(conn.execute(statement))

    def names(self, column: sa.Column[Any]) -> set[str]:
        return {row[0] for row in self.rows(sa.select(column))}

    def execute(self, statement: sa.Update | sa.Delete | sa.Insert) -> None:
        """Change rows without the service."""
        db_api.write(lambda conn: conn.execute(statement))

    @contextlib.contextmanager
    def attempts(self) -> Iterator[mock.Mock]:
        """Count the attempts of writing transactions."""
        with mock.patch.object(db_engine, '_attempt', wraps=db_engine._attempt) as attempt:
            yield attempt


@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class OutcomeTest(NewConsumerTestCase):
    """The same responses as for a request that also allocates from another provider."""

    def setUp(self) -> None:
        super().setUp()
        self.target = self.make_provider({'VCPU': 10})

    def assertRejected(self, response: Response, status: int, *details: str) -> None:
        self.assertEqual(status, response.status, response.body)
        for detail in details:
            self.assertIn(detail, response.detail)
        self.assertEqual(set(), self.names(models.projects.c.external_id))
        self.assertEqual([], self.rows(sa.select(models.consumers)))
        self.assertEqual(1, self.provider(self.target)['generation'])

    def test_rows_of_the_claim(self):
        consumer = str(uuid.uuid4())
        with self.attempts() as attempts:
            response = self.put(claim({self.target: 3}), consumer)
        self.assertEqual((204, 1), (response.status, attempts.call_count))
        shown = self.send_ok('GET', f'/allocations/{consumer}')
        self.assertEqual(
            ('project', 'user', 'INSTANCE', 1),
            tuple(
                shown[key]
                for key in ('project_id', 'user_id', 'consumer_type', 'consumer_generation')
            ),
        )
        self.assertEqual({'VCPU': 3}, shown['allocations'][self.target]['resources'])
        self.assertEqual(2, self.provider(self.target)['generation'])
        for table in ('projects', 'users', 'consumer_types', 'consumers', 'allocations'):
            columns = models.metadata.tables[table].c
            ((created, updated),) = self.rows(sa.select(columns.created_at, columns.updated_at))
            self.assertIsNotNone(created, table)
            self.assertIsNone(updated, table)
        updated_at = models.resource_providers.c.updated_at
        self.assertEqual([], self.rows(sa.select(updated_at).where(updated_at.is_(None))))
        self.audit()

    def test_several_classes(self):
        """The allocations are inserted together, or the first refused one is reported."""
        target = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10, 'DISK_GB': 10})
        body = claim({target: 3})
        resources = {'MEMORY_MB': 4, 'VCPU': 3, 'DISK_GB': 5}  # not in the order of names or ids
        body['allocations'][target]['resources'] = resources
        consumer = str(uuid.uuid4())
        with mock.patch.object(judge, 'check_amounts') as check:
            self.assertEqual(204, self.put(body, consumer).status)
        self.assertFalse(check.called)
        shown = self.send_ok('GET', f'/allocations/{consumer}')['allocations']
        self.assertEqual({target: resources}, _resources(shown))
        used = models.allocations.c.used
        rows = self.rows(sa.select(used).order_by(models.allocations.c.id))
        self.assertEqual([4, 3, 5], [row.used for row in rows])
        resources |= {'VCPU': 7, 'MEMORY_MB': 7, 'DISK_GB': 5}
        with mock.patch.object(consumer_rows, 'forget_owners') as forget:
            response = self.put(body)
        self.assertEqual(409, response.status)
        self.assertIn("'MEMORY_MB'", response.detail)
        self.assertFalse(forget.called)
        self.assertEqual(3, self.used(target))
        resources |= {'MEMORY_MB': 6}
        self.assertEqual(204, self.put(body).status)
        self.audit()

    def test_more_classes_than_one_statement_inserts(self):
        with mock.patch.object(write, 'MOST_INSERTED_DIRECTLY', 0):
            self.test_rows_of_the_claim()

    def test_amounts_that_no_column_can_store(self):
        response = self.put(claim({self.target: MAX_INT + 1}))
        self.assertRejected(response, 409, 'more than its max_unit')

    def test_without_a_consumer_type(self):
        body = claim({self.target: 1})
        del body['consumer_type']
        for project in ('one', 'one', 'two'):
            consumer = str(uuid.uuid4())
            self.send_ok('PUT', f'/allocations/{consumer}', {**body, 'project_id': project}, '1.37')
            self.assertEqual(
                'unknown', self.send_ok('GET', f'/allocations/{consumer}')['consumer_type']
            )
        self.assertEqual(set(), self.names(models.consumer_types.c.name))

    def test_beyond_the_capacity(self):
        response = self.put(claim({self.target: 11}))
        self.assertRejected(response, 409, '11 requested or in use, capacity 10')
        # The project was not inserted, and the process must not remember it.
        with mock.patch.object(consumer_rows, 'forget_owners') as forget:
            self.assertEqual(204, self.put(claim({self.target: 10})).status)
        self.assertFalse(forget.called)

    def test_unknown_provider(self):
        self.assertRejected(self.put(claim({UNKNOWN: 1})), 400, UNKNOWN)

    def test_unknown_provider_and_class(self):
        body = claim({UNKNOWN: 1})
        body['allocations'][UNKNOWN]['resources'] = {'CUSTOM_UNKNOWN': 1}
        self.assertRejected(self.put(body), 400, UNKNOWN)

    def test_provider_without_root(self):
        table = models.resource_providers
        self.execute(sa.update(table).values(root_provider_id=None))
        self.assertEqual(400, self.put(claim({self.target: 1})).status)
        self.assertEqual([(1,)], self.rows(sa.select(table.c.generation)))
        self.assertEqual([], self.rows(sa.select(models.consumers)))

    def test_unknown_class(self):
        body = claim({self.target: 11})
        body['allocations'][self.target]['resources']['CUSTOM_UNKNOWN'] = 1
        self.assertRejected(self.put(body), 400, 'CUSTOM_UNKNOWN')
        body['allocations'][self.target]['resources'] = {'CUSTOM_UNKNOWN': 1}
        self.assertRejected(self.put(body), 400, 'CUSTOM_UNKNOWN')

    def test_class_without_inventory(self):
        body = claim({self.target: 1})
        body['allocations'][self.target]['resources']['MEMORY_MB'] = 1
        self.assertRejected(self.put(body), 409, 'MEMORY_MB', 'does not exist')
        body['allocations'][self.target]['resources'] = {'MEMORY_MB': 1}
        self.assertRejected(self.put(body), 409, 'MEMORY_MB', 'does not exist')

    def test_existing_consumer_and_unknown_provider(self):
        """The conflict of the consumer takes precedence, and shows the stored generation."""
        consumer = str(uuid.uuid4())
        for given in (None, 1):
            body = claim({self.target: 1}, given)
            self.send_ok('PUT', f'/allocations/{consumer}', body)
        for spelling in {consumer, consumer.upper()}:
            with self.attempts() as attempts:
                response = self.put(claim({UNKNOWN: 1}, project='new'), spelling)
            self.assertEqual((409, errors.CONCURRENT_UPDATE), (response.status, response.code))
            self.assertIn('2', response.detail.replace(consumer, '').replace(spelling, ''))
            self.assertEqual(1, attempts.call_count)
        self.assertEqual({'project'}, self.names(models.projects.c.external_id))
        shown = self.send_ok('GET', f'/allocations/{consumer}')
        self.assertEqual(2, shown['consumer_generation'])

    def test_spellings_that_the_database_compares_as_equal(self):
        """The rejected spelling of a provider or consumer is the one of the request."""
        upper = self.target.upper()
        equal = self.engine_name == 'mysql'
        consumer = str(uuid.uuid4())
        response = self.send('POST', '/allocations', {consumer: claim({upper: 1})})
        self.assertEqual(204 if equal else 400, response.status, response.body)
        self.send('PUT', f'/allocations/{consumer}', claim({self.target: 1}))
        response = self.send('POST', '/allocations', {consumer.upper(): claim({self.target: 1})})
        self.assertEqual(409 if equal else 204, response.status, response.body)


@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class MemoryTest(NewConsumerTestCase):
    """The memory of a process can be wrong."""

    def test_owners_that_another_program_deleted(self):
        target = self.make_provider({'VCPU': 10})
        for table, column in (
            (models.projects, 'external_id'),
            (models.users, 'external_id'),
            (models.consumer_types, 'name'),
        ):
            with self.subTest(table=table.name):
                used = self.used(target)
                consumer = str(uuid.uuid4())
                self.send_ok('PUT', f'/allocations/{consumer}', claim({target: 1}))
                self.send_ok('DELETE', f'/allocations/{consumer}')
                self.execute(sa.delete(table))
                before = self.provider(target)['generation']
                with self.attempts() as attempts:
                    self.assertEqual(204, self.put(claim({target: 1}), consumer).status)
                self.assertEqual(1, attempts.call_count)
                self.assertEqual(1, len(self.names(table.c[column])))
                self.assertEqual(before + 1, self.provider(target)['generation'])
                self.assertEqual(used + 1, self.used(target))
                self.send_ok('DELETE', f'/allocations/{consumer}')
        self.audit()

    def test_wrong_memory_is_forgotten_though_the_claim_is_rejected(self):
        """The next claim then inserts the owner, and is not written twice."""
        target = self.make_provider({'VCPU': 10})
        self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', claim({target: 1}))
        self.execute(sa.delete(models.allocations))
        self.execute(sa.delete(models.consumers))
        self.execute(sa.delete(models.projects))
        with mock.patch.object(write, 'lock_consumers', wraps=write.lock_consumers) as slow:
            self.assertEqual(409, self.put(claim({target: 11})).status)
            slow.assert_called_once()
            self.assertEqual(204, self.put(claim({target: 10})).status)
            slow.assert_called_once()
        self.audit()

    def test_allocations_without_a_consumer_row(self):
        target, other = (self.make_provider({'VCPU': 10}) for _ in range(2))
        consumer = str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{consumer}', claim({target: 8}))
        for provider, amount in ((target, 10), (other, 1)):
            self.execute(sa.delete(models.consumers))
            self.send_ok('PUT', f'/allocations/{consumer}', claim({provider: amount}))
            shown = self.send_ok('GET', f'/allocations/{consumer}')['allocations']
            self.assertEqual({provider: {'VCPU': amount}}, _resources(shown))
        self.assertEqual(0, self.used(target))
        self.audit()


def _resources(allocations: dict[str, Any]) -> dict[str, Any]:
    return {provider: one['resources'] for provider, one in allocations.items()}


@where.not_on('sqlite', reason='On SQLite a writer has the lock from its first statement.')
@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class ConcurrentTest(NewConsumerTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.target = self.make_provider({'VCPU': 10})
        self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', claim({self.target: 1}))

    @contextlib.contextmanager
    def inserted(self, statement: sa.Insert) -> Iterator[sa.Connection]:
        """Insert a row in a transaction that remains open in the context."""
        with db_api.get_placement_engine().connect() as conn:
            conn.execute(statement)
            yield conn

    def consumer_row(self, consumer: str) -> sa.Insert:
        owners = sa.select(models.consumers.c.project_id, models.consumers.c.user_id)
        project, user = self.rows(owners)[0]
        return sa.insert(models.consumers).values(
            uuid=consumer, project_id=project, user_id=user, generation=7
        )

    def test_consumer_in_an_open_transaction(self):
        """The claim waits for the other transaction, and claims of other consumers do not."""
        # While an INSERT waits for a row, InnoDB also lets those INSERTs wait whose UUIDs are
        # between this row and the row before it.
        for end, status, consumer in (
            (sa.Connection.commit, 409, '00000000-0000-4000-8000-000000000001'),
            (sa.Connection.rollback, 204, '00000000-0000-4000-8000-000000000000'),
        ):
            with self.attempts() as attempts:
                with self.inserted(self.consumer_row(consumer)) as conn:
                    path = f'/allocations/{consumer}'
                    waiting = testcase.start(self.call('PUT', path, claim({self.target: 1})))
                    wait_until(lambda: attempts.call_count == 1)
                    responses = [self.put(claim({self.target: 1})) for _ in range(2)]
                    self.assertEqual([204, 204], [response.status for response in responses])
                    self.assertFalse(waiting.done())
                    end(conn)
                    self.assertEqual(status, waiting.result(LONGEST).status)
                self.assertEqual(3, attempts.call_count)
        self.execute(sa.delete(models.consumers).where(models.consumers.c.generation == 7))
        self.audit()

    def test_project_in_an_open_transaction(self):
        """The claim waits, and uses the row of the other transaction if it is committed.

        On MySQL and MariaDB, the committed row violates the unique key, and the claim is retried,
        unless its INSERT began after the commit.
        """
        for end in (sa.Connection.commit, sa.Connection.rollback):
            retried = self.engine_name == 'mysql' and end is sa.Connection.commit
            project = str(uuid.uuid4())
            row = sa.insert(models.projects).values(external_id=project)
            with self.attempts() as attempts:
                with self.inserted(row) as conn:
                    body = claim({self.target: 1}, project=project)
                    path = f'/allocations/{uuid.uuid4()}'
                    waiting = testcase.start(self.call('PUT', path, body))
                    wait_until(lambda: attempts.call_count == 1)
                    self.assertEqual(204, self.put(claim({self.target: 1})).status)
                    self.assertFalse(waiting.done())
                    end(conn)
                    self.assertEqual(204, waiting.result(LONGEST).status)
                self.assertIn(attempts.call_count, {2, 3} if retried else {2})
            self.assertIn(project, self.names(models.projects.c.external_id))
        self.audit()

    def interleave(self, module: Any, name: str, call: testcase.Call) -> list[Response]:
        """Send a request before the first call of a function."""
        responses: list[Response] = []
        original: Callable[..., Any] = getattr(module, name)

        def interleaved(*args: Any, **kwargs: Any) -> Any:
            if not sent:
                sent.append(True)
                responses.append(testcase.start(call).result(LONGEST))
            return original(*args, **kwargs)

        sent: list[bool] = []
        patch = mock.patch.object(module, name, interleaved)
        patch.start()
        self.addCleanup(patch.stop)
        return responses

    def test_provider_is_deleted_before_it_is_locked(self):
        target = self.make_provider({'VCPU': 10})
        consumer = str(uuid.uuid4())
        delete = self.call('DELETE', f'/resource_providers/{target}')
        deleted = self.interleave(generation, 'lock_and_increment_provider', delete)
        self.assertEqual(400, self.put(claim({target: 1}, project='new'), consumer).status)
        self.assertEqual([204], [response.status for response in deleted])
        self.assertNotIn(consumer, self.names(models.consumers.c.uuid))
        self.assertNotIn('new', self.names(models.projects.c.external_id))

    def test_capacity_is_claimed_before_the_provider_is_locked(self):
        for body, version in (
            (claim({self.target: 9}), 'latest'),
            (claim_1_27({self.target: 9}), '1.27'),
        ):
            with self.subTest(version=version):
                # If InnoDB inserts a key again that was deleted, it also locks the next key, which
                # may be the one of the interrupted claim.
                path = f'/allocations/{uuid.uuid4()}'
                other = self.call('PUT', path, body, version)
                claimed = self.interleave(generation, 'lock_and_increment_provider', other)
                self.assertEqual(409, self.put(claim({self.target: 1})).status)
                self.assertEqual([204], [response.status for response in claimed])
                self.assertEqual(10, self.used(self.target))
                self.send_ok('DELETE', path)

    def test_owner_is_inserted_before_the_consumer(self):
        """Both claims insert the same project, and none is retried."""
        body = claim({self.target: 1}, project='new')
        other = self.call('PUT', f'/allocations/{uuid.uuid4()}', body)
        responses = self.interleave(consumer_rows, 'insert_unknown_owners', other)
        with self.attempts() as attempts:
            self.assertEqual(204, self.put(body).status)
        self.assertEqual([204], [response.status for response in responses])
        self.assertEqual(2, attempts.call_count)
        self.audit()
