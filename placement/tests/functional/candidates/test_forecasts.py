"""Searches whose first statement reads a forecast page."""

from collections.abc import Iterator
import contextlib
import dataclasses
import json

import hypothesis
from hypothesis import strategies as st
from oslotest import base
import sqlalchemy as sa

from placement import exception
from placement.candidates import forecasts, model, paging, render, search
from placement.candidates.forecasts import Forecast
from placement.db.sqlalchemy import models
from placement.tests.functional.candidates import rows
from placement.tests.functional.candidates.test_rows import THOROUGH
from placement.tests.statements import recorded
from placement.tests.unit.candidates import strategies, worlds

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
        search._search_in_transaction(query, OPTIONS, old, self.conn, lambda: None)
        return forecasts.of((query, OPTIONS.cap, OPTIONS.strategy))

    def search_at_once(
        self, query: model.Query[str], forecast: Forecast
    ) -> render.SearchResult | None:
        """Search with one statement; return None if the search needs another one."""
        with self._connected() as conn:
            try:
                return search._search_at_once(query, OPTIONS, forecast, conn, conn.close)
            except search._NeedsTransactionError:
                return None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        with self.conn.engine.connect() as conn, recorded(conn) as statements:
            yield conn
            self.statements = len(statements)

    def assertSameResult(self, expected: render.SearchResult, found: render.SearchResult) -> None:
        self.assertEqual(_body(expected), _body(found))


def _body(result: render.SearchResult) -> object:
    return json.loads(render.render(result, render.Shape.of(worlds.NEWEST)))


class AnyWorldTest(ForecastsTestCase):
    """Whatever a forecast contains, the search finds the same, or asks for a transaction."""

    @THOROUGH
    @hypothesis.given(strategies.searches(), strategies.searches(), st.integers(1, 20))
    def test_any_forecast(self, learnt, example, size):
        world, query = learnt
        self.fill(world)
        unbound = world.unbind(query)
        forecast = self.learn(unbound)
        if forecast is None:
            return
        world, _ = example
        self.fill(world)
        with contextlib.suppress(exception.BadInput):
            expected = self.search(unbound)
            for forecast_of_size in (forecast, dataclasses.replace(forecast, size=size)):
                found = self.search_at_once(unbound, forecast_of_size)
                if found is not None:
                    self.assertSameResult(expected, found)
                again = search._search_in_transaction(
                    unbound, OPTIONS, forecast_of_size, self.conn, lambda: None
                )
                self.assertSameResult(expected, again)


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
        sizes = [self.learn(self.query(world, limit=limit)).size for limit in (1, 10, 100)]
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
        full = [dataclasses.replace(host, inventories={}) for host in world.hosts[:10]]
        self.fill(worlds.World((*full, *world.hosts[10:])))
        self.assertIsNone(self.search_at_once(query, forecast))
        forecast = self.learn(query, forecast)
        self.assertLess(30, forecast.size)
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
        self.assertFalse(self.learn(query, forecast).at_once)

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
