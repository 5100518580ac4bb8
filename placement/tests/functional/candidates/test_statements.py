"""How many statements a search costs, and what the database does for them."""

from collections.abc import Iterator
import dataclasses
from typing import Any

from oslotest import base
import sqlalchemy as sa

from placement.candidates import search
from placement.tests.functional.candidates import rows
from placement.tests.statements import recorded
from placement.tests.unit.candidates import cases, worlds

# Rows that a statement made for itself may be walked through; tables may not.
_HARMLESS = ('SCAN few', 'SCAN CONSTANT ROW', 'SCAN (subquery')


def cloud(trees: int, sharers: int, children: int = 2) -> worlds.World:
    """Hosts that can take anything, and pools that all of them can use."""
    hosts = [
        worlds.Host(
            name=f'SS{n}',
            stock={'DISK_GB': worlds.stock(10**6)},
            traits=('SHARE',),
            aggregates=('S',),
        )
        for n in range(sharers)
    ]
    for n in range(trees):
        stock = {'VCPU': worlds.stock(100), 'DISK_GB': worlds.stock(100)}
        hosts.append(worlds.Host(name=f'CN{n}', stock=stock, aggregates=('S',)))
        hosts += [
            worlds.Host(name=f'CN{n}C{k}', parent=f'CN{n}', stock={'SRIOV_NET_VF': worlds.stock(8)})
            for k in range(children)
        ]
    return worlds.World(tuple(hosts))


class StatementsTest(base.BaseTestCase):
    """A constant, and a constant for each page."""

    def cost(self, world: worlds.World, query: str, limit: int) -> int:
        asked = dataclasses.replace(world.unbind(world.parse(query)), limit=limit)
        with rows.database() as conn:
            rows.fill(conn, world)
            with recorded(conn) as statements:
                answer = search.search(conn, asked)
        self.assertEqual(limit, len(answer.candidates))
        return len(statements)

    def test_groups(self):
        world = cloud(10, 0)
        for count in (1, 8):
            groups = '&'.join(f'resources{n}=VF:1' for n in range(1, count + 1))
            cost = self.cost(world, f'resources=V:1&{groups}&group_policy=none', limit=5)
            self.assertEqual(3, cost)

    def test_trees(self):
        for trees in (20, 200):
            self.assertEqual(3, self.cost(cloud(trees, 0), 'resources=V:1', limit=10))

    def test_sharers(self):
        # Names, trees, their lenders; whole trees of lenders and names for the answer. When the
        # first page is all pools, the database is asked for more: all lenders, and a page.
        for sharers, expected in ((2, 5), (20, 7), (40, 7)):
            cost = self.cost(cloud(20, sharers), 'resources=V:1,D:1', limit=10)
            self.assertEqual(expected, cost)

    def test_limit(self):
        """What the first page does not give is read at once."""
        world = cloud(400, 0, children=0)
        self.assertEqual(4, self.cost(world, 'resources=V:1', limit=50))
        self.assertEqual(4, self.cost(world, 'resources=V:1', limit=400))

    def test_all_that_do_not_fit_are_one_statement(self):
        world = cloud(200, 0)
        with rows.database() as conn:
            rows.fill(conn, world)
            with recorded(conn) as statements:
                answer = search.search(conn, world.unbind(world.parse('resources=V:99,VF:9')))
        self.assertEqual([], list(answer.candidates))
        self.assertEqual(3, len(statements))

    def test_the_scarcest_slot_is_asked_first(self):
        """However small its amount is, and however the query puts it."""
        stock = {'VCPU': worlds.stock(10**6), 'SRIOV_NET_VF': worlds.stock(1000)}
        world = worlds.World(tuple(worlds.Host(name=f'CN{n}', stock=stock) for n in range(40)))
        with rows.database() as conn:
            rows.fill(conn, world)
            for query in ('resources=V:90001,VF:1013', 'resources=VF:1013,V:90001'):
                with recorded(conn) as statements:
                    search.search(conn, world.unbind(world.parse(query)))
                strict = list(statements[-1][1])  # in the order of the text
                self.assertLess(strict.index(1013), strict.index(90001), query)

    def test_one_pool_for_everybody(self):
        """What a pool gives alone is not looked for around each of its hosts."""
        world = cloud(200, 1)
        world = worlds.World(
            tuple(
                dataclasses.replace(host, stock={}) if host.name.startswith('CN') else host
                for host in world.hosts
            )
        )
        asked = dataclasses.replace(world.unbind(world.parse('resources=D:10')), limit=10)
        with rows.database() as conn:
            rows.fill(conn, world)
            with recorded(conn) as statements:
                answer = search.search(conn, asked)
        self.assertEqual(1, len(answer.candidates))
        self.assertLessEqual(len(statements), 7)


class WidthTest(base.BaseTestCase):
    """What a tree costs follows its width, not the square of it."""

    def steps(self, world: worlds.World, query: str) -> int:
        """Hundreds of instructions that SQLite carries out for a search that finds nothing."""
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1

        with rows.database() as conn:
            rows.fill(conn, world)
            conn.connection.dbapi_connection.set_progress_handler(count, 100)
            answer = search.search(conn, world.unbind(world.parse(query)))
            conn.connection.dbapi_connection.set_progress_handler(None, 0)
        self.assertEqual([], list(answer.candidates))
        return counted

    def assert_linear(self, build, query: str) -> None:
        narrow, wide = (self.steps(worlds.World(tuple(build(width))), query) for width in (50, 100))
        self.assertLess(wide, 3 * narrow)

    def test_many_that_serve_one_slot_and_nobody_for_another(self):
        """The first pages, of other hosts, let the wrong slot look scarce."""

        def build(width: int) -> Iterator[worlds.Host]:
            for n in range(30):
                yield worlds.Host(name=f'R{n}')
                early = n < 20
                stock = {'VGPU': worlds.stock(1)} if early else {'SRIOV_NET_VF': worlds.stock(1)}
                for k in range(2 if early else width):
                    yield worlds.Host(name=f'C{n}_{k}', parent=f'R{n}', stock=stock)

        self.assert_linear(build, 'resources1=VF:1&resources2=VGPU:1&group_policy=none')

    def test_traits_that_are_nowhere_in_the_tree(self):
        def build(width: int) -> Iterator[worlds.Host]:
            for n in range(30):
                traits = ('T1',) if n < 20 else ()
                yield worlds.Host(name=f'R{n}', stock={'VCPU': worlds.stock(1)}, traits=traits)
                stock = {'SRIOV_NET_VF': worlds.stock(1)}
                for k in range(width):
                    yield worlds.Host(name=f'C{n}_{k}', parent=f'R{n}', stock=stock)

        self.assert_linear(build, 'resources=V:2,VF:1&required=T1')


class QueryPlansTest(base.BaseTestCase):
    """SQLite finds all rows through an index."""

    def test_no_table_is_walked_through(self):
        with rows.database() as conn:
            for case in cases.CASES:
                rows.fill(conn, case.world)
                query = case.world.unbind(case.world.parse(case.query, case.version))
                if any(amount > 2**31 for group in query.groups for _, amount in group.amounts):
                    continue  # is told without a look at any row
                for size in (1, 16):
                    self.patch(search, 'FIRST_PAGE', size)
                    with recorded(conn) as statements:
                        search.search(conn, query)
                    for statement, parameters in statements:
                        self._check(conn, statement, parameters)

    def _check(self, conn: sa.Connection, statement: str, parameters: Any) -> None:
        plan = conn.exec_driver_sql(f'EXPLAIN QUERY PLAN {statement}', parameters)
        for *_, detail in plan:
            scanned = detail.startswith('SCAN') and not detail.startswith(_HARMLESS)
            # Who looks up all rows of a class to serve one tree does that for each tree.
            if scanned or 'inventories_resource_class_id_idx' in detail:
                self.fail(f'{detail}\n{statement}')
