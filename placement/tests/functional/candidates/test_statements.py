"""The number of statements of a search, and their query plans."""

from collections.abc import Iterator
import dataclasses
from typing import Any
from unittest import mock

from oslotest import base
import sqlalchemy as sa

from placement.candidates import paging, search
from placement.tests import worlds
from placement.tests.functional.candidates import rows
from placement.tests.statements import recorded
from placement.tests.unit.candidates import cases

# A statement may scan its own intermediate results, but no table.
_HARMLESS = ('SCAN few', 'SCAN CONSTANT ROW', 'SCAN (subquery')


def cloud(trees: int, sharing: int, children: int = 2) -> worlds.World:
    """Trees that can serve any query, and sharing providers for all of them."""
    hosts = [
        worlds.Host(
            name=f'SS{n}',
            inventories={'DISK_GB': worlds.inventory(10**6)},
            traits=('SHARE',),
            aggregates=('S',),
        )
        for n in range(sharing)
    ]
    for n in range(trees):
        inventories = {'VCPU': worlds.inventory(100), 'DISK_GB': worlds.inventory(100)}
        hosts.append(worlds.Host(name=f'CN{n}', inventories=inventories, aggregates=('S',)))
        hosts += [
            worlds.Host(
                name=f'CN{n}C{k}',
                parent=f'CN{n}',
                inventories={'SRIOV_NET_VF': worlds.inventory(8)},
            )
            for k in range(children)
        ]
    return worlds.World(tuple(hosts))


class StatementsTest(base.BaseTestCase):
    """A constant number of statements, and a constant number for each page."""

    def count(self, world: worlds.World, query: str, limit: int) -> int:
        """Return the number of statements if an earlier response contained the same names."""
        limited = dataclasses.replace(world.unbind(world.parse(query)), limit=limit)
        with rows.database() as conn:
            rows.fill(conn, world)
            search.search_with(conn, limited, search.Options())
            with recorded(conn) as statements:
                result = search.search_with(conn, limited, search.Options())
        self.assertEqual(limit, len(result.candidates))
        return len(statements)

    def test_groups(self):
        world = cloud(10, 0)
        for count in (1, 8):
            groups = '&'.join(f'resources{n}=VF:1' for n in range(1, count + 1))
            statements = self.count(world, f'resources=V:1&{groups}&group_policy=none', limit=5)
            self.assertEqual(2, statements)

    def test_trees(self):
        for trees in (20, 200):
            self.assertEqual(2, self.count(cloud(trees, 0), 'resources=V:1', limit=10))

    def test_sharing_providers(self):
        # Ids of names, trees, and the other trees of their sharing providers. If the first page has
        # only sharing providers, two more statements read all sharing providers and a strict page.
        for sharing, expected in ((2, 3), (20, 5), (40, 5)):
            statements = self.count(cloud(20, sharing), 'resources=V:1,D:1', limit=10)
            self.assertEqual(expected, statements)

    def test_limit(self):
        """One further page has all missing candidates."""
        world = cloud(400, 0, children=0)
        self.assertEqual(3, self.count(world, 'resources=V:1', limit=50))
        self.assertEqual(3, self.count(world, 'resources=V:1', limit=400))

    def test_trees_without_candidates_take_one_statement(self):
        world = cloud(200, 0)
        with rows.database() as conn:
            rows.fill(conn, world)
            with recorded(conn) as statements:
                query = world.unbind(world.parse('resources=V:99,VF:9'))
                result = search.search_with(conn, query, search.Options())
        self.assertEqual([], list(result.candidates))
        self.assertEqual(3, len(statements))

    def test_the_scarcest_slot_is_checked_first(self):
        """Whatever its amount and its position in the query are."""
        inventories = {'VCPU': worlds.inventory(10**6), 'SRIOV_NET_VF': worlds.inventory(1000)}
        world = worlds.World(
            tuple(worlds.Host(name=f'CN{n}', inventories=inventories) for n in range(40))
        )
        with rows.database() as conn:
            rows.fill(conn, world)
            for query in ('resources=V:90001,VF:1013', 'resources=VF:1013,V:90001'):
                with recorded(conn) as statements:
                    bound = world.unbind(world.parse(query))
                    search.search_with(conn, bound, search.Options())
                strict = list(statements[-1][1])  # in the order of the text
                self.assertLess(strict.index(1013), strict.index(90001), query)

    def test_one_sharing_provider_for_all_trees(self):
        """Candidates of the sharing provider alone are not searched for each of the trees."""
        world = cloud(200, 1)
        world = worlds.World(
            tuple(
                dataclasses.replace(host, inventories={}) if host.name.startswith('CN') else host
                for host in world.hosts
            )
        )
        query = dataclasses.replace(world.unbind(world.parse('resources=D:10')), limit=10)
        with rows.database() as conn:
            rows.fill(conn, world)
            with recorded(conn) as statements:
                result = search.search_with(conn, query, search.Options())
        self.assertEqual(1, len(result.candidates))
        self.assertLessEqual(len(statements), 7)


class CombinedSlotsTest(base.BaseTestCase):
    """The database skips trees that can serve each group alone, but not all groups together."""

    HOST = '[V: total 60 used 1 max_unit 8, M:100]'

    def _read(self, drawing: list[str], query: str) -> tuple[int, int]:
        """Return the numbers of candidates, and of statements, of a search without a limit."""
        world = worlds.World.of('\n'.join(drawing))
        with rows.database() as conn:
            rows.fill(conn, world)
            with recorded(conn) as statements:
                bound = world.unbind(world.parse(query))
                result = search.search_with(conn, bound, search.Options())
        return len(result.candidates), len(statements)

    def _groups(self, resources: str, count: int, policy: str) -> str:
        groups = '&'.join(f'resources{n}={resources}' for n in range(1, count + 1))
        return f'{groups}&group_policy={policy}'

    def assert_skipped(self, drawing: list[str], query: str) -> None:
        """The names, the first page, and one strict page without a tree."""
        with mock.patch.object(search.solver, 'solve', wraps=search.solver.solve) as solve:
            self.assertEqual((0, 3), self._read(drawing, query))
        self.assertEqual(paging.FIRST_PAGE, solve.call_count)

    def test_sum_of_one_class(self):
        hosts = [f'H{n}{self.HOST}' for n in range(50)]
        self.assert_skipped(hosts, self._groups('M:1', 101, 'none'))

    def test_max_unit_limits_the_sum(self):
        hosts = [f'H{n}{self.HOST}' for n in range(50)]
        self.assert_skipped(hosts, self._groups('V:1', 9, 'none'))

    def test_different_groups(self):
        hosts = [f'H{n}{self.HOST}' for n in range(50)]
        self.assert_skipped(hosts, 'resources1=M:60&resources2=M:41&group_policy=none')
        self.assert_skipped(hosts, 'resources=M:60&resources2=M:41')

    def test_isolated_groups_of_one_kind(self):
        hosts = [line for n in range(50) for line in (f'H{n}', f'  A{n}[VF:8]', f'  B{n}[VF:8]')]
        self.assert_skipped(hosts, self._groups('VF:1', 3, 'isolate'))

    def test_isolated_groups_of_different_kinds(self):
        hosts = [f'H{n}{self.HOST}' for n in range(50)]
        self.assert_skipped(hosts, 'resources1=V:1&resources2=M:1&group_policy=isolate')

    def test_no_candidate_is_lost(self):
        """Although one provider is overcommitted, and each sum is exactly sufficient."""
        unfit = [f'H{n}[V:8]' for n in range(40)]
        fit = ['F', '  F0[V: total 4 used 9]', '  F1[V:8]', '  F2[V: total 9 max_unit 4]']
        for policy, count in (('none', 495), ('isolate', 0)):
            query = self._groups('V:1', 12, policy)
            self.assertEqual(count, self._read([*unfit, *fit], query)[0])
        query = self._groups('V:4', 2, 'isolate')
        self.assertEqual(2, self._read([*unfit, *fit], query)[0])

    def test_sharing_providers_serve_some_of_the_groups(self):
        unfit = [f'H{n}[V:1, D:4]' for n in range(40)]
        fit = ['F[V:2, D:4] @S', 'S[D:8] {SHARE} @S']
        groups = 'resources1=D:4&resources2=D:4&resources3=D:4&resources=V:2'
        self.assertEqual(3, self._read([*unfit, *fit], f'{groups}&group_policy=none')[0])
        groups = 'resources1=D:4&resources2=D:4&resources=V:2'
        self.assertEqual(2, self._read([*unfit, *fit], f'{groups}&group_policy=isolate')[0])

    def test_the_tree_serves_only_the_smaller_of_two_shared_amounts(self):
        others = [*(f'H{n}' for n in range(40)), 'S[D:8] {SHARE} @S']
        query = 'resources1=D:4&resources2=D:6&group_policy=isolate'
        self.assertEqual(0, self._read([*others, 'F @S'], query)[0])
        self.assertEqual(1, self._read([*others, 'F[D:5] @S'], query)[0])


class WidthTest(base.BaseTestCase):
    """The work for a tree grows linearly with its width."""

    def steps(self, world: worlds.World, query: str) -> int:
        """Hundreds of SQLite instructions of a search without candidates."""
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1

        with rows.database() as conn:
            rows.fill(conn, world)
            conn.connection.dbapi_connection.set_progress_handler(count, 100)
            bound = world.unbind(world.parse(query))
            result = search.search_with(conn, bound, search.Options())
            conn.connection.dbapi_connection.set_progress_handler(None, 0)
        self.assertEqual([], list(result.candidates))
        return counted

    def assert_linear(self, build, query: str) -> None:
        narrow, wide = (self.steps(worlds.World(tuple(build(width))), query) for width in (50, 100))
        self.assertLess(wide, 3 * narrow)

    def test_many_providers_for_one_slot_and_none_for_another(self):
        """In the first pages the other slot is the scarce one."""

        def build(width: int) -> Iterator[worlds.Host]:
            for n in range(30):
                yield worlds.Host(name=f'R{n}')
                early = n < 20
                inventories = {'VGPU' if early else 'SRIOV_NET_VF': worlds.inventory(1)}
                for k in range(2 if early else width):
                    yield worlds.Host(name=f'C{n}_{k}', parent=f'R{n}', inventories=inventories)

        self.assert_linear(build, 'resources1=VF:1&resources2=VGPU:1&group_policy=none')

    def _strict_page(self, width: int, amount: int) -> tuple[int, str]:
        """Return the number of candidates, and the query plan of the strict page."""
        hosts = [
            line
            for n in range(40)
            for line in (f'H{n}[M:{n + 1}, V:8]', *(f'  D{n}_{k}[VF:1]' for k in range(width)))
        ]
        world = worlds.World.of('\n'.join(hosts))
        with rows.database() as conn:
            rows.fill(conn, world)
            bound = world.unbind(world.parse(f'resources=M:{amount},V:1&resources1=VF:1'))
            with recorded(conn) as statements:
                result = search.search_with(conn, bound, search.Options())
            statement, parameters = statements[2]
            plan = conn.exec_driver_sql(f'EXPLAIN QUERY PLAN {statement}', parameters)
            return len(result.candidates), '\n'.join(row[-1] for row in plan)

    def test_a_class_of_few_providers_of_wide_trees(self):
        """The statement reads the inventories of the class instead of all providers."""
        index = 'inventories_resource_class_id_idx'
        for width, uses_index in ((2, False), (40, True)):
            for amount in (41, 39):
                count, plan = self._strict_page(width, amount)
                self.assertEqual((41 - amount) * width, count)
                self.assertEqual(uses_index, index in plan, plan)

    def test_traits_that_no_provider_of_the_tree_has(self):
        def build(width: int) -> Iterator[worlds.Host]:
            for n in range(30):
                traits = ('T1',) if n < 20 else ()
                yield worlds.Host(
                    name=f'R{n}', inventories={'VCPU': worlds.inventory(1)}, traits=traits
                )
                inventories = {'SRIOV_NET_VF': worlds.inventory(1)}
                for k in range(width):
                    yield worlds.Host(name=f'C{n}_{k}', parent=f'R{n}', inventories=inventories)

        self.assert_linear(build, 'resources=V:2,VF:1&required=T1')


class QueryPlansTest(base.BaseTestCase):
    """SQLite reads all rows through an index."""

    def test_no_table_is_scanned(self):
        with rows.database() as conn:
            for case in cases.CASES:
                rows.fill(conn, case.world)
                query = case.world.unbind(case.world.parse(case.row.query, case.version))
                if any(amount > 2**31 for group in query.groups for _, amount in group.amounts):
                    continue  # no inventory has such an amount: no rows are read
                for size, rare_up_to in ((1, 0), (1, 9), (16, 0), (16, 9)):
                    self.patch(paging, 'FIRST_PAGE', size)
                    with rows.rare_up_to(rare_up_to), recorded(conn) as statements:
                        search.search_with(conn, query, search.Options())
                    for statement, parameters in statements:
                        self._check(conn, statement, parameters)

    def _check(self, conn: sa.Connection, statement: str, parameters: Any) -> None:
        plan = conn.exec_driver_sql(f'EXPLAIN QUERY PLAN {statement}', parameters)
        for *_, detail in plan:
            scanned = detail.startswith('SCAN') and not detail.startswith(_HARMLESS)
            # If SQLite looks up all rows of a class for one tree, it does so for each tree.
            if scanned or 'inventories_resource_class_id_idx' in detail:
                self.fail(f'{detail}\n{statement}')
