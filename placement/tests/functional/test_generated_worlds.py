"""Rows that tools/perf and the tests insert directly equal those that the API writes."""

from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import worlds as tests
from placement.tests.functional import base
from placement.tests.worlds import Consumer, api, rows
from tools.perf import scenarios, worlds
from tools.perf.worlds import World

# The columns in which two hosts with equal resources differ.
_DIFFERENT = {'id', 'uuid', 'name', 'created_at', 'updated_at'}
_REFERENCES = {
    'resource_provider_id',
    'root_provider_id',
    'consumer_id',
    'project_id',
    'user_id',
    'consumer_type_id',
    'parent_provider_id',
    'aggregate_id',
}


class GeneratedWorldTest(base.TestCase):
    def load(self, world: World) -> None:
        worlds.load(db_api.get_placement_engine(), world)

    def rows(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> list[dict[str, Any]]:
        """Return the rows in the order of their values, without the values that must differ."""
        with db_api.get_placement_engine().connect() as conn:
            found = conn.execute(sa.select(table).where(condition)).mappings().all()
        rows = [
            {
                # Of a reference to another row, only whether it is NULL.
                name: value is not None if name in _REFERENCES else value
                for name, value in row.items()
                if name not in _DIFFERENT
            }
            for row in found
        ]
        return sorted(rows, key=lambda row: list(map(str, row.values())))

    def rows_of_host(self, provider: str, consumer: str) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of a provider and its consumer by table name."""
        providers, consumers = models.resource_providers, models.consumers
        id_ = sa.select(providers.c.id).where(providers.c.uuid == provider).scalar_subquery()
        found = {
            'resource_providers': self.rows(providers, providers.c.uuid == provider),
            'consumers': self.rows(consumers, consumers.c.uuid == consumer),
        }
        for table in (
            models.inventories,
            models.allocations,
            models.resource_provider_traits,
            models.resource_provider_aggregates,
        ):
            found[table.name] = self.rows(table, table.c.resource_provider_id == id_)
        return found

    def copy(self, host: str, consumer: str) -> tuple[str, str]:
        """Create a provider and a consumer with equal resources through the API."""
        copy = self.make_provider('copy')
        for generation, (path, key) in enumerate(
            (('inventories', 'inventories'), ('traits', 'traits'), ('aggregates', 'aggregates'))
        ):
            body = self.send_ok('GET', f'/resource_providers/{host}/{path}')
            self.send_ok(
                'PUT',
                f'/resource_providers/{copy}/{path}',
                {key: body[key], 'resource_provider_generation': generation},
            )
        claim = self.send_ok('GET', f'/allocations/{consumer}')
        resources = claim['allocations'][host]['resources']
        body = {**claim, 'allocations': {copy: {'resources': resources}}}
        of_copy = worlds.name_based('consumer of the copy')
        self.send_ok('PUT', f'/allocations/{of_copy}', {**body, 'consumer_generation': None})
        return copy, of_copy

    def providers_in(self, path: str) -> set[str]:
        """Return the UUIDs of the providers in the candidates of a request."""
        body = self.send_ok('GET', path)
        return {rp for one in body['allocation_requests'] for rp in one['allocations']}

    def test_a_loaded_host_has_the_rows_of_a_host_that_the_api_created(self):
        world = World('flat', 2, consumers=1)
        self.load(world)
        host, consumer = world.host(0), worlds.name_based('consumer-0')
        loaded = self.rows_of_host(host, consumer)
        created = self.rows_of_host(*self.copy(host, consumer))
        # The API incremented the generation for inventories, traits, aggregates, and the claim.
        self.assertEqual(4, created['resource_providers'][0].pop('generation'))
        self.assertEqual(1, loaded['resource_providers'][0].pop('generation'))
        self.assertEqual(created, loaded)
        self.assertEqual(3, len(loaded['allocations']))

    def test_a_world_of_the_tests_has_the_rows_that_the_api_creates(self):
        engine, found = db_api.get_placement_engine(), []
        consumer = Consumer('one', {'CN': {'VCPU': 2}, 'SS': {'DISK_GB': 3}})
        drawing = (
            'CN[V: total 8 reserved 1] {T1} @S\n  K[VF:4]\nSS[D: total 9 max_unit 5] {SHARE} @S'
        )
        world = tests.World.of(drawing).claimed(consumer)
        for create in (rows.fill, lambda _, world: api.create(self, world)):
            rows.fill(engine, tests.World(()))
            create(engine, world)
            found.append({table.name: self.rows(table, sa.true()) for table in rows.TABLES})
            for row in found[-1]['resource_providers']:
                del row['generation']
            found[-1]['resource_providers'].sort(key=str)
        self.assertEqual(*found)

    def test_searches_find_the_hosts_for_which_they_are_named(self):
        world = World('flat', 2000, consumers=1)
        self.load(world)
        unused = [world.host(number) for number in range(99, 2000, 100)]
        for name, expected in (
            ('candidates: 1 host in 100 fits, limit=10', unused[:10]),
            ('candidates: 1 host in 1,000 fits, limit=10', [world.host(999), world.host(1999)]),
            ('candidates: 1 host fits, limit=10', [world.host(1999)]),
            ('candidates: trait of 1 host, limit=10', [world.host(1999)]),
            ('candidates: nothing fits', []),
        ):
            scenario = scenarios.named('flat')[name]
            (request,) = scenarios.requests(scenario, self.fail, world, 0)
            self.assertEqual(set(expected), self.providers_in(request.path), name)
