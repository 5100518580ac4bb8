"""Searches whose first statement reads a forecast page."""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import json
from typing import Any
from unittest import mock
import uuid

import hypothesis
from hypothesis import strategies as st
from oslotest import base
import sqlalchemy as sa

from placement import db_api, exception
from placement.candidates import forecasts, model, paging, render, search
from placement.candidates.forecasts import Forecast
from placement.db.sqlalchemy import models
from placement.microversion import NESTED_CANDIDATES, Version
from placement.tests import worlds
from placement.tests.functional import base as functional_base
from placement.tests.functional.candidates import rows
from placement.tests.functional.candidates.test_rows import THOROUGH
from placement.tests.statements import recorded
from placement.tests.worlds import strategies

OPTIONS = search.Options()


def cloud(trees: int, amount: int = 8) -> worlds.World:
    inventories = {'VCPU': worlds.inventory(amount)}
    hosts = [
        worlds.Host(name=f'CN{n}', inventories=inventories, traits=('T1',)) for n in range(trees)
    ]
    return worlds.World(tuple(hosts))


class ForecastsTestCase(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        database = rows.database()
        self.conn = database.__enter__()
        self.addCleanup(database.__exit__, None, None, None)
        forecasts.clear()
        self.addCleanup(forecasts.clear)

    def fill(self, world: worlds.World) -> None:
        rows.fill(self.conn, world)
        # A search at once closes its connection, which ends the transaction of the test.
        self.conn.commit()

    def search(self, query: model.Query[str]) -> render.SearchResult:
        """Search in a transaction, as if the query were new."""
        return search.search_with(self.conn, query, OPTIONS)

    def learn(self, query: model.Query[str], old: Forecast | None = None) -> Forecast | None:
        """Search in a transaction, and return the forecast for the next search."""
        search._search_and_remember(query, OPTIONS, old, False, self.conn, lambda: None)
        return forecasts.of((query, OPTIONS.cap, OPTIONS.strategy))

    def search_at_once(
        self, query: model.Query[str], forecast: Forecast
    ) -> render.SearchResult | None:
        """Search with one statement; return None if the search needs another one."""
        with self._connected() as conn:
            return search._search_and_remember(query, OPTIONS, forecast, True, conn, conn.close)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        with self.conn.engine.connect() as conn, recorded(conn) as statements:
            yield conn
            self.statements = len(statements)

    def assertSameResult(
        self,
        expected: render.SearchResult,
        found: render.SearchResult,
        version: Version = worlds.NEWEST,
    ) -> None:
        self.assertEqual(_body(expected, version), _body(found, version))


def _body(result: render.SearchResult, version: Version) -> object:
    return json.loads(''.join(render.render(result, render.Shape.of(version))))


class AnyWorldTest(ForecastsTestCase):
    """Whatever a forecast contains, the search finds the same, or asks for a transaction."""

    @THOROUGH
    @hypothesis.given(strategies.searches(), strategies.searches(), st.integers(1, 20))
    def test_any_forecast(self, learnt, example, size):
        self._check(learnt, example, size)

    @THOROUGH
    @hypothesis.given(
        strategies.sharing_searches(),
        strategies.sharing_searches(),
        st.sampled_from((2, 3, 20)),
        st.none() | st.integers(1, 3),
    )
    def test_any_forecast_if_pages_are_small(self, learnt, example, size, limit):
        """The order of candidates depends on the sizes of pages, if sharing providers exist."""
        with mock.patch.object(paging, 'FIRST_PAGE', 2):
            self._check(learnt, example, size, limit)

    def _check(
        self,
        learnt: tuple[worlds.World, model.Query[int]],
        example: tuple[worlds.World, model.Query[int]],
        size: int,
        limit: int | None = None,
    ) -> None:
        """Search in the world of the forecast and in another world.

        :param size: the number of trees of another forecast
        """
        world, query = learnt
        self.fill(world)
        unbound = dataclasses.replace(world.unbind(query), limit=limit)
        # Before nested candidates, a search does not read the roots, which later versions show.
        version = worlds.NEWEST if query.nested else NESTED_CANDIDATES.before()
        forecast = self.learn(unbound)
        if forecast is None:
            return
        other, _ = example
        aggregates = {id_ for one in (world, other) for p in one.providers for id_ in p.aggregates}
        page = paging.OnlyPage(size, frozenset(aggregates))
        for stored in (world, other):
            self.fill(stored)
            with contextlib.suppress(exception.BadInput):
                expected = self.search(unbound)
                for one in (forecast, dataclasses.replace(forecast, page=page)):
                    found = self.search_at_once(unbound, one)
                    if found is not None:
                        self.assertSameResult(expected, found, version)
                    again = search._search_and_remember(
                        unbound, OPTIONS, one, False, self.conn, lambda: None
                    )
                    self.assertSameResult(expected, again, version)


class ForecastTest(ForecastsTestCase):
    QUERY = 'resources=V:1'

    def query(self, world: worlds.World, text: str = QUERY, limit: int | None = 20):
        return dataclasses.replace(world.unbind(world.parse(text)), limit=limit)

    def test_a_repeated_search_is_one_statement(self):
        world = cloud(40)
        for text in (self.QUERY, 'resources=V:1&required=T1', 'resources=V:1&required=!T2'):
            for limit in (1, 10, 20, 39, 40, 100, None):
                self.fill(world)
                query = self.query(world, text, limit)
                forecast = self.learn(query)
                found = self.search_at_once(query, forecast)
                self.assertEqual(1, self.statements)
                self.assertSameResult(self.search(query), found)

    def test_the_page_has_only_the_trees_that_are_needed(self):
        world = cloud(500)
        self.fill(world)
        sizes = [self.learn(self.query(world, limit=limit)).page.size for limit in (1, 10, 100)]
        self.assertEqual([4, 13, 103], sizes)

    def test_too_many_trees_for_one_page(self):
        self.patch(paging, 'LARGEST_PAGE', 50)
        world = cloud(60)
        self.fill(world)
        self.assertTrue(self.learn(self.query(world, limit=40)).at_once)
        for limit in (50, None):
            self.assertFalse(self.learn(self.query(world, limit=limit)).at_once)

    def test_few_trees_fit(self):
        """Strict pages are faster than a page of all trees."""
        world = cloud(40)
        self.fill(world)
        query = self.query(world)
        self.assertTrue(self.learn(query).at_once)
        self.fill(cloud(40, amount=0))
        self.assertFalse(self.learn(query).at_once)

    def test_the_forecast_page_has_too_few_candidates(self):
        world = cloud(60)
        self.fill(world)
        query = self.query(world)
        forecast = self.learn(query)
        full = [dataclasses.replace(host, inventories={}) for host in world.hosts[:5]]
        self.fill(worlds.World((*full, *world.hosts[5:])))
        self.assertIsNone(self.search_at_once(query, forecast))
        forecast = self.learn(query, forecast)
        self.assertLess(25, forecast.page.size)
        self.assertSameResult(self.search(query), self.search_at_once(query, forecast))

    def test_a_trait_was_created_again(self):
        """The forecast page depends on an id that does not exist any more."""
        world = cloud(5)
        self.fill(world)
        query = self.query(world, 'resources=V:1&required=T1')
        forecast = self.learn(query)
        links, traits = models.resource_provider_traits, models.traits
        self.conn.execute(sa.delete(links))
        (old_id,) = world.providers[0].traits
        self.conn.execute(sa.update(traits).where(traits.c.id == old_id).values(id=9000))
        self.conn.execute(
            sa.insert(links), {'resource_provider_id': world.providers[0].id, 'trait_id': 9000}
        )
        self.conn.commit()
        self.assertIsNone(self.search_at_once(query, forecast))
        self.assertEqual(1, len(self.search(query).candidates))

    def test_a_first_sharing_provider(self):
        world = cloud(5)
        self.fill(world)
        query = self.query(world)
        forecast = self.learn(query)
        shared = worlds.Host(
            name='SS', inventories={'DISK_GB': worlds.inventory(9)}, traits=('SHARE',)
        )
        self.fill(worlds.World((*world.hosts, shared)))
        self.assertIsNone(self.search_at_once(query, forecast))
        self.assertTrue(self.learn(query, forecast).at_once)

    def shared_cloud(self, *more: str) -> worlds.World:
        """Hosts that share the disks of pools, which have smaller and larger ids."""
        lines = ['P0[D:900] {SHARE} @A', 'R', '  P1[D:900] {SHARE} @B']
        lines += [f'CN{n}[V:8] {{T1}} @{"AB"[n % 2]}' for n in range(40)]
        return worlds.World.of('\n'.join([*lines, 'P2[D:900] {SHARE} @B', *more]))

    def test_sharing_providers(self):
        """Their trees are read together with the page, even if they are not on it."""
        world = self.shared_cloud()
        self.fill(world)
        for text in (
            'resources=V:1,D:1',
            'resources=V:1,D:1&required=T1',
            'resources=V:1,D:1&root_required=T1',
            'resources1=V:1&resources2=D:1&group_policy=none',
        ):
            for limit in (1, 10, 40, 100, None):
                query = self.query(world, text, limit)
                # The first forecast page can have too few trees, because trees of sharing providers
                # take the places of others.
                forecast = self.learn(query, self.learn(query))
                found = self.search_at_once(query, forecast)
                self.assertEqual(1, self.statements)
                self.assertSameResult(self.search(query), found)
                self.assertEqual(min(limit or 60, 60), len(found.candidates))

    def test_another_sharing_provider_in_the_same_aggregates(self):
        query = self.query(self.shared_cloud(), 'resources=V:1,D:1', limit=None)
        self.fill(self.shared_cloud())
        forecast = self.learn(query)
        self.fill(self.shared_cloud('P3[D:900] {SHARE} @A'))
        found = self.search_at_once(query, forecast)
        self.assertSameResult(self.search(query), found)
        self.assertEqual(80, len(found.candidates))

    def test_a_tree_in_another_aggregate(self):
        """The statement did not read the sharing providers of this aggregate."""
        query = self.query(self.shared_cloud(), 'resources=V:1,D:1', limit=None)
        self.fill(self.shared_cloud())
        forecast = self.learn(query)
        self.fill(self.shared_cloud('CN[V:8] @C', 'P3[D:900] {SHARE} @C'))
        self.assertIsNone(self.search_at_once(query, forecast))
        forecast = self.learn(query, forecast)
        found = self.search_at_once(query, forecast)
        self.assertEqual(61, len(found.candidates))
        self.assertEqual(3, len(forecast.page.aggregates))

    def test_an_aggregate_without_a_tree_is_forgotten(self):
        query = self.query(self.shared_cloud(), 'resources=V:1,D:1', limit=None)
        self.fill(self.shared_cloud('CN[V:8] @C', 'P3[D:900] {SHARE} @C'))
        forecast = self.learn(query)
        self.fill(self.shared_cloud('P3[D:900] {SHARE} @D'))
        forecast = self.learn(query, forecast)
        self.fill(self.shared_cloud())
        self.assertEqual(2, len(self.learn(query, forecast).page.aggregates))

    def test_too_many_aggregates(self):
        world = self.shared_cloud()
        self.fill(world)
        query = self.query(world, 'resources=V:1,D:1')
        self.assertEqual(2, len(self.learn(query).page.aggregates))
        self.patch(paging, 'MOST_AGGREGATES', 1)
        self.assertFalse(self.learn(query).at_once)

    def test_the_order_does_not_depend_on_earlier_searches(self):
        """The candidate of the sharing provider is always at the same position."""
        lines = [*(f'CN{n}[V:1]' for n in range(4)), 'P0[D:9]', 'CN[V:1] @A', 'P1[D:9] {SHARE} @A']
        world = worlds.World.of('\n'.join(lines))
        self.fill(world)
        for limit in (1, 2, 3, None):
            query = self.query(world, 'resources=D:1', limit)
            expected, forecast = self.search(query), None
            for _ in range(3):
                found = search._search_and_remember(
                    query, OPTIONS, forecast, False, self.conn, lambda: None
                )
                self.assertSameResult(expected, found)
                forecast = forecasts.of((query, OPTIONS.cap, OPTIONS.strategy))

    def test_the_order_does_not_depend_on_the_size_of_the_forecast_page(self):
        """The first trees of the page decide whether the next pages are strict."""
        lines = [*(f'CN{n}[D:9]' for n in range(30)), 'CN[V:1] @A', 'P[D:9] {SHARE} @A']
        world = worlds.World.of('\n'.join(lines))
        self.fill(world)
        query = self.query(world, 'resources=D:1', limit=None)
        forecast = self.learn(query, self.learn(query))
        self.assertSameResult(self.search(query), self.search_at_once(query, forecast))
        full = [dataclasses.replace(host, inventories={}) for host in world.hosts[:12]]
        self.fill(worlds.World((*full, *world.hosts[12:])))
        self.assertIsNone(self.search_at_once(query, forecast))

    def test_the_forecast_page_ends_before_the_trees_of_sharing_providers(self):
        world = self.shared_cloud()
        self.fill(world)
        query = self.query(world, 'resources=V:1,D:1')
        forecast = self.learn(query)
        page = dataclasses.replace(forecast.page, size=5)
        self.assertIsNone(self.search_at_once(query, dataclasses.replace(forecast, page=page)))

    def test_no_forecast_if_a_sharing_provider_appears(self):
        """The first page then depends on the sharing providers in the trees of in_tree."""
        self.fill(worlds.World.of('CN[V:8]'))
        world = worlds.World.of('CN[V:8]\nP[D:9] {SHARE}')
        query = self.query(world, 'resources=V:1&in_tree=CN')
        forecast = self.learn(query)
        self.assertTrue(forecast.at_once)
        self.fill(world)
        self.assertIsNone(self.search_at_once(query, forecast))
        self.assertIsNone(self.learn(query, forecast))

    def test_searches_that_often_fail_at_once_are_not_tried_again(self):
        world = cloud(5)
        self.fill(world)
        query = self.query(world)
        forecast = self.learn(query)
        failed = dataclasses.replace(forecast, failures=2)
        self.assertTrue(failed.at_once)
        self.assertFalse(dataclasses.replace(forecast, failures=3).at_once)
        self.search_at_once(query, failed)
        self.assertEqual(0, forecasts.of((query, OPTIONS.cap, OPTIONS.strategy)).failures)


class ChangedIdTest(functional_base.TestCase):
    """A name or UUID of the query gets another id, or its first id, after the forecast was made.

    The statement of the forecast page depends on these ids, so the page is that of another query.
    """

    AGGREGATES = tuple(sorted(str(uuid.uuid4()) for _ in range(2)))

    def setUp(self) -> None:
        super().setUp()
        forecasts.clear()
        self.addCleanup(forecasts.clear)
        # If something is rare, two fields of a forecast have its id.
        not_rare = rows.rare_up_to(0)
        not_rare.__enter__()
        self.addCleanup(not_rare.__exit__, None, None, None)
        self.hosts = [self.make_provider(name, {'VCPU': 8}) for name in ('first', 'second')]

    def check(
        self, query: str, before: list[str], change: Callable[[], None], after: list[str]
    ) -> None:
        """Search before and after a change, with a forecast that the change makes wrong.

        :param before: the UUIDs of the providers of all candidates
        :param after: the same after the change
        """
        self.assertEqual(before, self.candidates(query))
        ((key, forecast),) = forecasts._forecasts.items()
        self.assertTrue(forecast.at_once)
        with mock.patch.object(forecasts, '_statement', wraps=forecasts._statement) as forecasted:
            self.assertEqual(before, self.candidates(query))
            forecasted.assert_called_once()
            change()
            # A search of one statement, and a search in a transaction.
            for failures in (0, forecasts._MOST_FAILURES):
                forecasted.reset_mock()
                forecasts.remember(key, dataclasses.replace(forecast, failures=failures))
                self.assertEqual(after, self.candidates(query), f'{failures} failures')
                forecasted.assert_called()

    def candidates(self, query: str) -> list[str]:
        """Return the UUIDs of the providers of all candidates."""
        document = self.send_ok('GET', f'/allocation_candidates?{query}')
        used = {
            uuid_ for element in document['allocation_requests'] for uuid_ in element['allocations']
        }
        return sorted(used)

    def put(self, host: str, kind: str, **body: Any) -> None:
        """Replace the inventories, traits or aggregates of a provider."""
        path = f'/resource_providers/{host}'
        body['resource_provider_generation'] = self.send_ok('GET', path)['generation']
        self.send_ok('PUT', f'{path}/{kind}', body)

    def test_child_moves_to_another_tree(self) -> None:
        first, second = self.hosts
        child = self.make_provider('child', parent=first)

        def change() -> None:
            body = {'name': 'child', 'parent_provider_uuid': second}
            self.send_ok('PUT', f'/resource_providers/{child}', body)

        self.check(f'resources=VCPU:1&in_tree={child}', [first], change, [second])

    def test_child_becomes_a_root(self) -> None:
        first, _ = self.hosts
        child = self.make_provider('child', parent=first)

        def change() -> None:
            body = {'name': 'child', 'parent_provider_uuid': None}
            self.send_ok('PUT', f'/resource_providers/{child}', body)

        self.check(f'resources_A=VCPU:1&in_tree_A={child}', [first], change, [])

    def test_unknown_provider_is_created(self) -> None:
        first, _ = self.hosts
        child = str(uuid.uuid4())

        def change() -> None:
            body = {'uuid': child, 'name': 'child', 'parent_provider_uuid': first}
            self.send_ok('POST', '/resource_providers', body)

        self.check(f'resources=VCPU:1&in_tree={child}', [], change, [first])

    def test_provider_is_deleted_and_created_below_another_one(self) -> None:
        first, second = self.hosts
        child = self.make_provider('child', parent=first)

        def change() -> None:
            self.send_ok('DELETE', f'/resource_providers/{child}')
            body = {'uuid': child, 'name': 'child', 'parent_provider_uuid': second}
            self.send_ok('POST', '/resource_providers', body)

        self.check(f'resources=VCPU:1&in_tree={child}', [first], change, [second])

    def test_class_is_deleted_and_created_again(self) -> None:
        """Another class gets the id of the deleted class."""
        first, second = self.hosts
        self.send_ok('PUT', '/resource_classes/CUSTOM_OLD')
        self.put(first, 'inventories', inventories={'CUSTOM_OLD': {'total': 4}})

        def change() -> None:
            self.put(first, 'inventories', inventories={})
            self.send_ok('DELETE', '/resource_classes/CUSTOM_OLD')
            for name in ('CUSTOM_OTHER', 'CUSTOM_OLD'):
                self.send_ok('PUT', f'/resource_classes/{name}')
            self.put(first, 'inventories', inventories={'CUSTOM_OTHER': {'total': 4}})
            self.put(second, 'inventories', inventories={'CUSTOM_OLD': {'total': 4}})

        self.check('resources=CUSTOM_OLD:1', [first], change, [second])

    def test_trait_is_deleted_and_created_again(self) -> None:
        first, second = self.hosts
        self.send_ok('PUT', '/traits/CUSTOM_OLD')
        self.put(first, 'traits', traits=['CUSTOM_OLD'])

        def change() -> None:
            self.put(first, 'traits', traits=[])
            self.send_ok('DELETE', '/traits/CUSTOM_OLD')
            for name in ('CUSTOM_OTHER', 'CUSTOM_OLD'):
                self.send_ok('PUT', f'/traits/{name}')
            self.put(first, 'traits', traits=['CUSTOM_OTHER'])
            self.put(second, 'traits', traits=['CUSTOM_OLD'])

        self.check('resources=VCPU:1&required=CUSTOM_OLD', [first], change, [second])

    def test_unknown_aggregate_is_created(self) -> None:
        first, second = self.hosts
        aggregate, _ = self.AGGREGATES
        for query, before, after in (
            (f'member_of={aggregate}', [], [first]),
            (f'member_of=!{aggregate}', sorted(self.hosts), [second]),
        ):
            with self.subTest(query):
                forecasts.clear()
                self.put(first, 'aggregates', aggregates=[])
                # The service never deletes an aggregate.
                delete = sa.delete(models.placement_aggregates)
                db_api.write(lambda conn, delete=delete: conn.execute(delete))
                self.check(
                    f'resources=VCPU:1&{query}',
                    before,
                    lambda: self.put(first, 'aggregates', aggregates=[aggregate]),
                    after,
                )

    def test_aggregates_exchange_their_ids(self) -> None:
        """The rows were deleted and loaded again while the process ran."""
        first, second = self.hosts
        for host, aggregate in zip(self.hosts, self.AGGREGATES, strict=True):
            self.put(host, 'aggregates', aggregates=[aggregate])

        def exchange(conn: sa.Connection) -> None:
            table = models.placement_aggregates
            ids = dict(conn.execute(sa.select(table.c.uuid, table.c.id)).tuples().all())
            conn.execute(sa.update(table).values(uuid=None))
            for old, new in zip(self.AGGREGATES, reversed(self.AGGREGATES), strict=True):
                conn.execute(sa.update(table).where(table.c.id == ids[old]).values(uuid=new))

        query = f'resources=VCPU:1&member_of={self.AGGREGATES[0]}'
        self.check(query, [first], lambda: db_api.write(exchange), [second])
