"""Searches for traits and aggregates that few providers have."""

from unittest import mock

from oslotest import base
import sqlalchemy as sa

from placement.candidates import model, names, paging, rare, request, search
from placement.tests import worlds
from placement.tests.functional.candidates import rows
from placement.tests.statements import recorded

_TREES = 40


def cloud() -> worlds.World:
    """Trees of two providers. Children 1 to n of the first trees have the trait or aggregate n."""
    hosts = []
    for n in range(_TREES):
        vcpu, disk = {'VCPU': worlds.inventory(8)}, {'DISK_GB': worlds.inventory(8)}
        hosts.append(worlds.Host(name=f'CN{n}', inventories=disk))
        with_trait = ('T1',) * (n < 1) + ('T2',) * (n < 2)
        in_aggregate = ('A',) * (n < 1) + ('B',) * (n < 2)
        hosts.append(
            worlds.Host(
                name=f'CN{n}C',
                parent=f'CN{n}',
                inventories=vcpu,
                traits=with_trait,
                aggregates=in_aggregate,
            )
        )
    return worlds.World(tuple(hosts))


class RareTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conn = self.enterContext(rows.database())
        self.world = cloud()
        rows.fill(self.conn, self.world)

    def query(self, text: str) -> model.Query[str]:
        return self.world.unbind(self.world.parse(text))

    def rare(self, text: str, maximum: int) -> tuple[int, int]:
        """Return how many of the traits and of the aggregates in a query are rare."""
        with rows.rare_up_to(maximum):
            ids = names.look_up(self.conn, self.query(text)).ids
        return len(ids.rare_traits), len(ids.rare_aggregates)

    def pages(self, text: str) -> list[tuple[str, object]]:
        """Return the statements that read pages."""
        with recorded(self.conn) as executed:
            search.search_with(self.conn, self.query(text), search.Options())
        return [(sql, values) for sql, values in executed if ' few ' in sql]

    def test_the_maximum_is_included(self):
        query = 'resources=V:1&required=T1,T2&member_of=A&member_of=B'
        self.assertEqual((0, 0), self.rare(query, 0))
        self.assertEqual((1, 1), self.rare(query, 1))
        self.assertEqual((2, 2), self.rare(query, 2))

    def scanned(self, text: str) -> bool:
        """Whether a page reads a range of root ids, instead of the roots of a rare condition."""
        pages = self.pages(text)
        self.assertTrue(pages)
        plans = [self.conn.exec_driver_sql(f'EXPLAIN QUERY PLAN {sql}', v) for sql, v in pages]
        return any('>' in detail for plan in plans for *_, detail in plan)

    def test_only_the_trees_of_a_rare_trait_or_aggregate_are_read(self):
        for condition in ('required=T1', 'member_of=A', 'required=in:T1,T2', 'root_required=T1'):
            query = f'resources=V:1&{condition}'
            self.assertFalse(self.scanned(query), condition)
            with rows.rare_up_to(0):
                self.assertTrue(self.scanned(query), condition)

    def test_all_their_candidates_are_found(self):
        with mock.patch.object(paging, 'FIRST_PAGE', 1):
            self.assertEqual(1, len(self.found('resources=V:1&required=T1')))
            self.assertEqual(2, len(self.found('resources=V:1&required=T2')))
            self.assertEqual(2, len(self.found('resources=V:1&required=in:T1,T2')))
            self.assertEqual(1, len(self.found('resources=V:1&required=T2&member_of=A')))

    def found(self, text: str) -> list[model.Candidate]:
        return list(search.search_with(self.conn, self.query(text), search.Options()).candidates)

    def test_a_group_that_a_sharing_provider_can_serve_restricts_no_tree(self):
        query = self.query('resources=V:1&required=T1&member_of=A')
        ids = request.with_ids(query, names.look_up(self.conn, query).ids)
        root = sa.column('root', sa.Integer)
        self.assertEqual(1, len(rare.root_conditions(ids, has_sharing=False, root=root)))
        self.assertEqual([], rare.root_conditions(ids, has_sharing=True, root=root))
