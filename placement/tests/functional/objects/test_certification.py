"""What protects data if no lock excludes other transactions, as between the nodes of a cluster."""

import datetime
import itertools
import uuid

from oslo_utils import fixture as utils_fixture
import sqlalchemy as sa

from placement import db_api, exception
from placement.claims import rows
from placement.db.sqlalchemy import models
from placement.objects import generation
from placement.tests import where
from placement.tests.functional import base


@where.also_on_mysql('MySQL decides which rows an UPDATE changes.')
class CertificationTest(base.TestCase):
    def test_each_touch_changes_the_row(self):
        """Also within one second: a cluster certifies only rows that changed."""
        self.make_provider('host')
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

    def test_a_consumer_was_deleted(self):
        """The row count of the DELETE is compared with the number of consumers that were read."""
        host = self.make_provider('host', {'VCPU': 10})
        for _ in range(2):
            self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', base.claim({host: {'VCPU': 1}}))
        table = models.consumers

        def work(conn: sa.Connection) -> None:
            ids = conn.scalars(sa.select(table.c.id)).all()
            conn.execute(sa.delete(table).where(table.c.id == ids[0]))
            self.assertRaises(exception.ConcurrentChange, rows.delete_consumers, conn, ids)
            conn.rollback()
            rows.delete_consumers(conn, ids)
            self.assertEqual([], conn.execute(sa.select(table)).all())

        db_api.write(work)
