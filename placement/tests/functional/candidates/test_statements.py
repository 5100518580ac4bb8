"""The number of statements of a search, and the work of the database for them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from placement.tests import worlds
from placement.tests.functional.candidates.database import MANY, DatabaseTestCase
from placement.tests.statements import recorded
from placement.tests.unit.candidates import cases
from placement.tests.unit.telemetry.switched_on import SwitchedOn

# A statement may scan its own intermediate results, but no table.
_HARMLESS = ('SCAN few', 'SCAN CONSTANT ROW', 'SCAN (subquery')


def cloud(trees: int, sharing: int, children: int = 2) -> worlds.World:
    """Trees that can serve any query, and sharing providers for all of them."""
    lines = [f'SS{n}[D:1000000] {{SHARE}} @S' for n in range(sharing)]
    for n in range(trees):
        lines += [f'CN{n}[V:100, D:100] @S', *(f'  CN{n}C{k}[VF:8]' for k in range(children))]
    return worlds.World.of('\n'.join(lines))


class CountedTestCase(DatabaseTestCase):
    def draw(self, lines: Iterable[str]) -> None:
        self.fill(worlds.World.of('\n'.join(lines)))

    def count(self, query: str) -> tuple[int, int]:
        """Return the numbers of candidates and of statements of a search."""
        with recorded(self.conn) as self.statements:
            found = self.search(query).candidates
        return len(found), len(self.statements)


class StatementsTest(CountedTestCase):
    """A constant number of statements, and a constant number for each page."""

    def check(self, world: worlds.World, query: str, limit: int, statements: int) -> None:
        """Require a number of candidates and of statements."""
        self.fill(world)
        self.assertEqual((limit, statements), self.count(f'{query}&limit={limit}'))

    def test_groups(self):
        for count in (1, 8):
            groups = '&'.join(f'resources{n}=VF:1' for n in range(1, count + 1))
            self.check(cloud(10, 0), f'resources=V:1&{groups}&group_policy=none', 5, 3)

    def test_trees(self):
        for trees in (20, 200):
            self.check(cloud(trees, 0), 'resources=V:1', limit=10, statements=3)

    def test_sharing_providers(self):
        # Ids of names, trees, the other trees of their sharing providers, and names of ids. If the
        # first page has only sharing providers, two more statements read all sharing providers and
        # a strict page.
        for sharing, expected in ((2, 4), (20, 6), (40, 6)):
            self.check(cloud(20, sharing), 'resources=V:1,D:1', 10, expected)

    def test_limit(self):
        """One further page has all missing candidates."""
        for limit in (50, 400):
            self.check(cloud(400, 0, children=0), 'resources=V:1', limit, 4)

    def test_all_candidates(self):
        """Pages grow: the first one has 16 trees, and no page has more than 2,048."""
        self.check(cloud(4500, 0, children=0), 'resources=V:1', 4500, 6)
        self.assertEqual((4500, 7), self.count('resources=V:1'))

    def test_sizes_of_pages(self):
        """A page has a few more trees than candidates are missing, if most trees have one."""
        fit, unfit = 'F{0}[V:1]', 'U{0}'
        several = 'F{0}\n' + '\n'.join(f'  F{{0}}_{n}[V:1]' for n in range(4))
        # The last root of the first page, and the number of trees of the second one.
        for query, first, expected in (
            # All trees of the first page have a candidate, and 100 are missing.
            ('resources=V:1&limit=116', [fit] * 16, {16, 103}),
            # One tree has no candidate.
            ('resources=V:1&limit=115', [unfit] + [fit] * 15, {16, 109}),
            # The trees have four candidates each.
            ('resources=V:1&limit=160', [unfit] + [several] * 15, {72, 28}),
            # One tree has a candidate. The database skips trees like the others from then on.
            ('resources=V:1&limit=101', [fit] + [unfit] * 15, {16, 103}),
            # All candidates are requested.
            ('resources=V:1', [fit] * 16, {16, 128}),
        ):
            trees = [*first, *([first[-1]] * 150)]
            self.draw(tree.format(n) for n, tree in enumerate(trees))
            self.count(query)
            self.assertLessEqual(expected, {*self.statements[2].parameters}, query)

    def test_trees_without_candidates_take_one_statement(self):
        self.fill(cloud(200, 0))
        self.assertEqual((0, 3), self.count('resources=V:99,VF:9'))

    def test_the_scarcest_slot_is_checked_first(self):
        """Whatever its amount and its position in the query are."""
        self.draw(f'CN{n}[V:1000000, VF:1000]' for n in range(40))
        for query in ('resources=V:90001,VF:1013', 'resources=VF:1013,V:90001'):
            self.count(query)
            strict = list(self.statements[-1].parameters)  # in the order of the text
            self.assertLess(strict.index(1013), strict.index(90001), query)

    def test_one_sharing_provider_for_all_trees(self):
        """Candidates of the sharing provider alone are not searched for each of the trees."""
        self.draw(['SS[D:1000] {SHARE} @S', *(f'CN{n} @S' for n in range(200))])
        found, statements = self.count('resources=D:10&limit=10')
        self.assertEqual(1, found)
        self.assertLessEqual(statements, 7)


class CombinedSlotsTest(CountedTestCase):
    """The database skips trees that can serve each group alone, but not all groups together."""

    HOST = '[V: total 60 used 1 max_unit 8, M:100]'

    def groups(self, resources: str, count: int, policy: str) -> str:
        groups = '&'.join(f'resources{n}={resources}' for n in range(1, count + 1))
        return f'{groups}&group_policy={policy}'

    def test_trees_that_are_skipped(self):
        """The names, the first page, and one strict page without a tree."""
        pair = 'H{0}\n  A{0}[VF:8]\n  B{0}[VF:8]'
        for host, query in (
            # The sum of one class, and max_unit, which limits the sum.
            ('H{0}' + self.HOST, self.groups('M:1', 101, 'none')),
            ('H{0}' + self.HOST, self.groups('V:1', 9, 'none')),
            # Different groups.
            ('H{0}' + self.HOST, 'resources1=M:60&resources2=M:41&group_policy=none'),
            ('H{0}' + self.HOST, 'resources=M:60&resources2=M:41'),
            # Isolated groups of one kind, and of different kinds.
            (pair, self.groups('VF:1', 3, 'isolate')),
            ('H{0}' + self.HOST, 'resources1=V:1&resources2=M:1&group_policy=isolate'),
        ):
            steps = []
            for trees in (50, 100):
                self.draw(host.format(n) for n in range(trees))
                with SwitchedOn() as metrics:
                    self.assertEqual((0, 3), self.count(query), query)
                    steps.append(metrics.value('placement_candidate_search_steps_sum'))
            self.assertEqual(steps[0], steps[1], query)

    def check(self, unfit: str, fit: Sequence[str], query: str, candidates: int) -> None:
        """Require a number of candidates of trees that follow many trees without candidates."""
        self.draw([*(f'H{n}{unfit}' for n in range(MANY)), *fit])
        self.assertEqual(candidates, self.count(query)[0], query)

    def test_no_candidate_is_lost(self):
        """Although one provider is overcommitted, and each sum is exactly sufficient."""
        fit = ['F', '  F0[V: total 4 used 9]', '  F1[V:8]', '  F2[V: total 9 max_unit 4]']
        for resources, count, policy, expected in (
            ('V:1', 12, 'none', 495),
            ('V:1', 12, 'isolate', 0),
            ('V:4', 2, 'isolate', 2),
        ):
            self.check('[V:8]', fit, self.groups(resources, count, policy), expected)

    def test_sharing_providers_serve_some_of_the_groups(self):
        fit = ['F[V:2, D:4] @S', 'S[D:8] {SHARE} @S']
        for count, policy, expected in ((3, 'none', 3), (2, 'isolate', 2)):
            query = f'{self.groups("D:4", count, policy)}&resources=V:2'
            self.check('[V:1, D:4]', fit, query, expected)

    def test_the_tree_serves_only_the_smaller_of_two_shared_amounts(self):
        query = 'resources1=D:4&resources2=D:6&group_policy=isolate'
        for last, expected in (('F @S', 0), ('F[D:5] @S', 1)):
            self.check('', ['S[D:8] {SHARE} @S', last], query, expected)


class WorkTest(CountedTestCase):
    """The work of the database for one search."""

    def work(self, lines: Iterable[str], query: str) -> int:
        """Return tens of SQLite instructions of a search."""
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1

        self.draw(lines)
        driver: Any = self.conn.connection.dbapi_connection
        driver.set_progress_handler(count, 10)
        self.found = list(self.search(query).candidates)
        driver.set_progress_handler(None, 0)
        return counted

    def assert_linear(self, tree: Callable[[int, int], Iterable[str]], query: str) -> None:
        """Require that the work grows linearly with the width of the trees."""
        narrow, wide = (
            self.work((line for n in range(30) for line in tree(n, width)), query)
            for width in (50, 100)
        )
        self.assertEqual([], self.found)
        self.assertLess(wide, 3 * narrow)

    def test_many_providers_for_one_slot_and_none_for_another(self):
        """In the first pages the other slot is the scarce one."""

        def tree(n: int, width: int) -> Iterable[str]:
            short, count = ('VGPU', 2) if n < 20 else ('VF', width)
            return (f'R{n}', *(f'  C{n}_{k}[{short}:1]' for k in range(count)))

        self.assert_linear(tree, 'resources1=VF:1&resources2=VGPU:1&group_policy=none')

    def test_traits_that_no_provider_of_the_tree_has(self):
        def tree(n: int, width: int) -> Iterable[str]:
            root = f'R{n}[V:1]' + (' {T1}' if n < 20 else '')
            return (root, *(f'  C{n}_{k}[VF:1]' for k in range(width)))

        self.assert_linear(tree, 'resources=V:2,VF:1&required=T1')

    def test_only_the_trees_of_a_rare_trait_or_aggregate_are_read(self):
        """The work does not depend on the number of other trees."""
        for condition in ('required=T1', 'member_of=A', 'required=in:T1,T2', 'root_required=T1'):
            few, many = (
                self.work(
                    [*(f'H{n}[V:8]' for n in range(trees)), 'F[V:8] {T1} @A', 'G[V:8] {T2}'],
                    f'resources=V:1&{condition}',
                )
                for trees in (100, 1000)
            )
            self.assertEqual(1 + ('in:' in condition), len(self.found), condition)
            self.assertLess(many, 2 * few, condition)

    def test_no_table_is_scanned(self):
        """SQLite reads all rows through an index."""
        for case in cases.CASES:
            query = case.world.unbind(case.world.parse(case.row.query, case.version))
            if any(amount > 2**31 for group in query.groups for _, amount in group.amounts):
                continue  # no inventory has such an amount: no rows are read
            for world in (case.world, case.world.behind(MANY)):
                self.fill(world)
                with recorded(self.conn) as statements:
                    self.search(query)
                for statement in statements:
                    for detail in explain(self.conn, statement):
                        scanned = detail.startswith('SCAN') and not detail.startswith(_HARMLESS)
                        # If SQLite looks up all rows of a class for one tree, it does so for each.
                        if scanned or 'inventories_resource_class_id_idx' in detail:
                            self.fail(f'{detail}\n{statement.text}')


def explain(conn: Any, statement: Any) -> list[str]:
    """Return the lines of the query plan of a statement."""
    plan = conn.exec_driver_sql(f'EXPLAIN QUERY PLAN {statement.text}', statement.parameters)
    return [row[-1] for row in plan]
