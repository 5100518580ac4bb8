"""The rows that the tests insert directly equal those that the API writes."""

from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.worlds import Consumer, api, rows

# The columns in which two rows with equal content differ.
_DIFFERENT = {'id', 'uuid', 'name', 'created_at', 'updated_at'}
_REFERENCES = {
    *('resource_provider_id', 'root_provider_id', 'parent_provider_id', 'aggregate_id'),
    *('consumer_id', 'project_id', 'user_id', 'consumer_type_id'),
}


class GeneratedWorldTest(base.TestCase):
    def rows(self, table: sa.Table) -> list[dict[str, Any]]:
        """Return the rows in the order of their values, without the values that must differ."""
        ignored = _DIFFERENT | ({'generation'} if table.name == 'resource_providers' else set())
        with db_api.get_placement_engine().connect() as conn:
            found = conn.execute(sa.select(table)).mappings().all()
        rows = [
            {
                # Of a reference to another row, only whether it is NULL.
                name: value is not None if name in _REFERENCES else value
                for name, value in row.items()
                if name not in ignored
            }
            for row in found
        ]
        return sorted(rows, key=lambda row: list(map(str, row.values())))

    def test_a_world_of_the_tests_has_the_rows_that_the_api_creates(self):
        engine, found = db_api.get_placement_engine(), []
        consumer = Consumer('one', {'CN': {'VCPU': 2}, 'SS': {'DISK_GB': 3}})
        drawing = (
            'CN[V: total 8 reserved 1] {T1} @S\n  K[VF:4]\nSS[D: total 9 max_unit 5] {SHARE} @S'
        )
        world = worlds.World.of(drawing).claimed(consumer)
        for create in (rows.fill, lambda _, world: api.create(self, world)):
            rows.fill(engine, worlds.World(()))
            create(engine, world)
            found.append({table.name: self.rows(table) for table in rows.TABLES})
        self.assertEqual(*found)
