"""The memory of the owners of committed claims."""

from unittest import mock

from oslotest import base
import sqlalchemy as sa

from placement.claims import consumer_rows, statements
from placement.claims.claim import Claim


class OwnerMemoryTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://')

    def claim(self, project: str) -> Claim:
        return Claim(
            consumer_uuid='consumer',
            project_id=project,
            user_id='user',
            consumer_type=None,
            generation=None,
            checks_generation=True,
            allocations={'provider': {'VCPU': 1}},
        )

    def projects(self) -> list[str]:
        """Return the remembered projects."""
        owners = consumer_rows._remembered_owners(self.engine)
        return sorted(name for kind, name in owners if kind == statements.PROJECT)

    def test_the_owner_that_was_remembered_first_is_dropped(self):
        with mock.patch.object(consumer_rows, 'MOST_REMEMBERED', 3):
            for project in ('a', 'b', 'a', 'c', 'd'):
                consumer_rows.remember_owners(self.engine, [self.claim(project)])

        self.assertEqual(['c', 'd'], self.projects())

    def test_an_owner_can_be_forgotten_twice(self):
        consumer_rows.remember_owners(self.engine, [self.claim('a'), self.claim('b')])
        for _ in range(2):
            consumer_rows.forget_owners(self.engine, self.claim('a'))

        self.assertEqual(['b'], self.projects())
