"""Single interleavings that a race may need hours to meet, made to happen."""

from collections.abc import Callable
import datetime
import itertools
from typing import Any
from unittest import mock
import uuid

from oslo_utils import fixture as utils_fixture
import sqlalchemy as sa

from placement import db_api
from placement.claims import consumer
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows
from placement.tests.functional.races import arena
from placement.tests.functional.races.arena import claim, old_claim


class InterleavingsTest(arena.Arena):
    def setUp(self):
        if not arena.on_server():
            self.skipTest('on SQLite a writer is alone from its first statement')
        super().setUp()

    def meddle(self, module: Any, name: str, rival: arena.Call) -> list[arena.Answer]:
        """Let a rival come and go after the first call of a function."""
        answers: list[arena.Answer] = []
        original: Callable[..., Any] = getattr(module, name)

        def meddled(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not patch_is_used:
                patch_is_used.append(True)
                answers.append(arena.start(rival).result(30))
            return result

        patch_is_used: list[bool] = []
        patch = mock.patch.object(module, name, meddled)
        patch.start()
        self.addCleanup(patch.stop)
        return answers

    def test_consumer_comes_while_it_is_released(self):
        """What came after the look for the consumer is not deleted without it."""
        provider = self.make_provider({'VCPU': 10})
        consumer_uuid = str(uuid.uuid4())
        path = f'/allocations/{consumer_uuid}'
        rival = self.call('PUT', path, old_claim({provider: 2}), '1.27')
        answers = self.meddle(consumer, 'lock', rival)
        self.assertIn(self.ask('DELETE', path).status, (204, 404))
        self.assertEqual([204], [answer.status for answer in answers])
        self.audit()

    def test_provider_moves_while_it_is_renamed(self):
        """A body that names the parent that the provider has: by then it has another one."""
        first, second = self.make_provider(), self.make_provider()
        own = self.make_provider(parent=first)
        path = f'/resource_providers/{own}'
        rival = self.call('PUT', path, {'name': 'moved', 'parent_provider_uuid': second})
        answers = self.meddle(provider_rows, 'read', rival)
        renamed = self.sure('PUT', path, {'name': 'renamed', 'parent_provider_uuid': first})
        self.assertEqual([200], [answer.status for answer in answers])
        self.assertEqual(('renamed', first), (renamed['name'], renamed['parent_provider_uuid']))
        self.audit()

    def test_parent_goes_while_a_child_comes(self):
        parent = self.make_provider(parent=self.make_provider())
        answers = self.meddle(
            provider_rows, 'read', self.call('DELETE', f'/resource_providers/{parent}')
        )
        body = {'name': 'child', 'parent_provider_uuid': parent}
        self.assertEqual(400, self.ask('POST', '/resource_providers', body).status)
        self.assertEqual([204], [answer.status for answer in answers])
        self.audit()

    def test_tree_is_moved_while_a_child_comes(self):
        parent = self.make_provider(parent=self.make_provider())
        elsewhere = self.make_provider()
        path = f'/resource_providers/{parent}'
        rival = self.call('PUT', path, {'name': 'moved', 'parent_provider_uuid': elsewhere})
        answers = self.meddle(provider_rows, 'read', rival)
        body = {'name': 'child', 'parent_provider_uuid': parent}
        child = self.sure('POST', '/resource_providers', body)
        self.assertEqual([200], [answer.status for answer in answers])
        self.assertEqual(elsewhere, child['root_provider_uuid'])
        self.audit()

    def test_new_consumer_is_taken(self):
        """From 1.28 on the client is told, before it the last one wins."""
        provider = self.make_provider({'VCPU': 10})
        for version, body, status in (('1.39', claim, 409), ('1.27', old_claim, 204)):
            path = f'/allocations/{uuid.uuid4()}'
            rival = self.call('PUT', path, body({provider: 3}), version)
            answers = self.meddle(consumer, 'lock', rival)
            answer = self.ask('PUT', path, body({provider: 1}), version)
            self.assertEqual((status, [204]), (answer.status, [one.status for one in answers]))
            self.audit()


class TouchTest(arena.Arena):
    def test_each_touch_changes_the_row(self):
        """Within one second too: a cluster compares only rows that were changed."""
        self.make_provider()
        table = models.resource_providers
        now = datetime.datetime(2030, 1, 1, 12, 0, 0, 250000)
        self.useFixture(utils_fixture.TimeFixture(now))
        seen = []
        for _ in range(4):
            with db_api.get_placement_engine().begin() as conn:
                ids = conn.scalars(sa.select(table.c.id)).all()
                self.assertEqual(1, generation.touch(conn, table, ids))
                seen.append(conn.scalar(sa.select(table.c.updated_at)))
        for before, after in itertools.pairwise(seen):
            self.assertNotEqual(before, after)
        for moment in seen:
            self.assertLessEqual(abs(moment - now), datetime.timedelta(seconds=1.5))
