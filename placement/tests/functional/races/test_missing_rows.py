"""Requests about rows that do not exist, so that no lock protects them."""

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any
from unittest import mock
import uuid

import sqlalchemy as sa

from placement import db_api, exception
from placement.claims import consumer_rows
from placement.db.sqlalchemy import models
from placement.objects import resource_provider
from placement.tests import where
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim, claim_1_27, inventories_of
from placement.tests.waiting import LONGEST


@where.not_on('sqlite', reason='On SQLite a writer has the lock from its first statement.')
class MissingRowsTest(testcase.RaceTestCase):
    """`during` sends requests while another request is between two statements."""

    def during(
        self, module: Any, name: str, calls: Sequence[testcase.Call]
    ) -> list[testcase.Response]:
        """Send requests, one after the other, after the first call of a function."""
        responses: list[testcase.Response] = []
        original: Callable[..., Any] = getattr(module, name)
        done: list[bool] = []

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not done:
                done.append(True)
                responses.extend(testcase.start(call).result(LONGEST) for call in calls)
            return result

        patch = mock.patch.object(module, name, interrupted)
        patch.start()
        self.addCleanup(patch.stop)
        return responses

    def delete_row(self, table: sa.Table, column: str, value: object) -> None:
        """Delete rows without the service."""
        rows = sa.delete(table).where(table.c[column] == value)
        db_api.write(lambda conn: conn.execute(rows))

    def consumer_without_row(self, provider: str, amount: int) -> str:
        consumer = str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{consumer}', claim({provider: amount}))
        self.delete_row(models.consumers, 'uuid', consumer)
        return consumer

    def release_and_claim(self, consumer: str, provider: str, amount: int) -> list[testcase.Call]:
        """Release the allocations of a consumer, and claim the same amount for another one."""
        return [
            self.call('DELETE', f'/allocations/{consumer}'),
            self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: amount})),
        ]

    def test_allocations_are_released_while_they_are_replaced(self):
        """A claim is not granted if it depends on allocations that another request released."""
        for method in ('PUT', 'POST'):
            with self.subTest(method=method):
                provider = self.make_provider({'VCPU': 10})
                consumer = self.consumer_without_row(provider, 8)
                calls = self.release_and_claim(consumer, provider, 8)
                responses = self.during(consumer_rows, 'ensure_owners', calls)
                body = claim({provider: 10})
                path = f'/allocations/{consumer}'
                if method == 'POST':
                    path, body = '/allocations', {consumer: body}
                self.assertEqual(409, self.send(method, path, body).status)
                self.assertEqual([204, 204], [response.status for response in responses])
                self.assertEqual(8, self.used(provider))
                self.audit()

    def test_allocations_are_released_while_they_are_reshaped(self):
        provider = self.make_provider({'VCPU': 10})
        consumer = self.consumer_without_row(provider, 8)
        responses = self.during(
            consumer_rows, 'ensure_owners', self.release_and_claim(consumer, provider, 8)
        )
        generation = self.provider(provider)['generation']
        body = {
            'inventories': {provider: inventories_of({'VCPU': 10}, generation + 1)},
            'allocations': {consumer: claim({provider: 10})},
        }
        self.assertEqual(409, self.send('POST', '/reshaper', body).status)
        self.assertEqual([204, 204], [response.status for response in responses])
        self.assertEqual(8, self.used(provider))
        self.audit()

    def test_allocations_are_replaced_while_they_are_emptied(self):
        """The allocations that are deleted are those that were read, not as many others."""
        provider = self.make_provider({'VCPU': 10})
        consumer = self.consumer_without_row(provider, 8)
        path = f'/allocations/{consumer}'
        responses = self.during(
            consumer_rows, 'ensure_owners', [self.call('PUT', path, claim({provider: 3}))]
        )
        self.assertEqual(409, self.send('PUT', path, claim({})).status)
        self.assertEqual([204], [response.status for response in responses])
        self.assertEqual(3, self.used(provider))
        self.audit()

    def test_last_writer_wins_before_consumer_generations(self):
        provider = self.make_provider({'VCPU': 10})
        consumer = self.consumer_without_row(provider, 8)
        path = f'/allocations/{consumer}'
        responses = self.during(
            consumer_rows,
            'ensure_owners',
            [self.call('PUT', path, claim_1_27({provider: 3}), '1.27')],
        )
        self.send_ok('PUT', path, claim_1_27({provider: 2}), '1.27')
        self.assertEqual([204], [response.status for response in responses])
        self.assertEqual(2, self.used(provider))
        self.audit()

    def test_allocations_of_a_class_without_row(self):
        """They are part of no usage, and are deleted with the others."""
        name = 'CUSTOM_DELETED'
        self.send_ok('PUT', f'/resource_classes/{name}')
        provider = self.make_provider({'VCPU': 10, name: 10})
        consumer = str(uuid.uuid4())
        body = claim({provider: 1})
        body['allocations'][provider]['resources'][name] = 1
        self.send_ok('PUT', f'/allocations/{consumer}', body)
        self.delete_row(models.resource_classes, 'name', name)
        self.send_ok('PUT', f'/allocations/{consumer}', claim({provider: 4}, 1))
        allocations = models.allocations
        with db_api.snapshot() as conn:
            self.assertEqual([4], conn.scalars(sa.select(allocations.c.used)).all())

    def test_two_moves_below_a_root_without_root(self):
        """The root is locked although its own root is NULL: together the moves make a loop."""
        root = self.make_provider()
        branches = [self.make_provider(parent=root) for _ in range(2)]
        leaves = [self.make_provider(parent=branch) for branch in branches]
        table = models.resource_providers
        change = sa.update(table).where(table.c.uuid == root).values(root_provider_id=None)
        db_api.write(lambda conn: conn.execute(change))
        first, second = (
            self.call(
                'PUT',
                f'/resource_providers/{branch}',
                {'name': f'moved-{branch}', 'parent_provider_uuid': leaf},
            )
            for branch, leaf in zip(branches, reversed(leaves), strict=True)
        )
        racing: list[futures.Future[testcase.Response]] = []
        subtree = resource_provider.subtree

        def interrupted(*args: Any) -> frozenset[int]:
            result = subtree(*args)
            if not racing:
                racing.append(testcase.start(second))
                futures.wait(
                    racing, 2
                )  # It waits for the lock of the root until this transaction ends.
            return result

        with mock.patch.object(resource_provider, 'subtree', interrupted):
            statuses = [first().status, racing[0].result(LONGEST).status]
        self.assertEqual([200, 400], statuses)


class DeletedRowsTest(testcase.RaceTestCase):
    """Without the locks of one server, as between the nodes of a cluster."""

    def test_consumer_was_deleted(self):
        """The row count of the DELETE is compared with the number of consumers that were read."""
        provider = self.make_provider({'VCPU': 10})
        for amount in (1, 2):
            self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: amount}))

        def work(conn: sa.Connection) -> None:
            ids = conn.scalars(sa.select(models.consumers.c.id)).all()
            conn.execute(sa.delete(models.consumers).where(models.consumers.c.id == ids[0]))
            self.assertRaises(exception.ConcurrentChange, consumer_rows.delete, conn, ids)
            conn.rollback()
            consumer_rows.delete(conn, ids)

        db_api.write(work)
        with db_api.snapshot() as conn:
            self.assertEqual([], conn.execute(sa.select(models.consumers)).all())


class ProviderWithoutRootTest(testcase.RaceTestCase):
    """A provider whose root is NULL, between providers of a tree."""

    def setUp(self):
        super().setUp()
        self.root = self.make_provider()
        self.top = self.make_provider(parent=self.root)
        middle = self.make_provider(parent=self.top)
        self.leaf = self.make_provider(parent=middle)
        table = models.resource_providers
        change = sa.update(table).where(table.c.uuid == middle).values(root_provider_id=None)
        db_api.write(lambda conn: conn.execute(change))

    def move(self, provider: str, parent: str) -> testcase.Response:
        body = {'name': f'moved-{provider}', 'parent_provider_uuid': parent}
        return self.send('PUT', f'/resource_providers/{provider}', body)

    def test_no_loop_through_it(self):
        self.assertEqual(400, self.move(self.top, self.leaf).status)

    def test_its_descendants_move_too(self):
        other = self.make_provider()
        self.assertEqual(200, self.move(self.top, other).status)
        self.assertEqual(other, self.provider(self.leaf)['root_provider_uuid'])
        self.audit()
