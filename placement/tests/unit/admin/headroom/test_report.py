"""The number of claims of each tree and aggregate, and the output."""

from oslotest import base

from placement.admin.headroom import render, report
from placement.admin.headroom.fragmentation import Fragmentation
from placement.admin.headroom.report import AGGREGATE, TREE, Headroom
from placement.admin.progress import silent
from placement.tests import worlds

WORLD = worlds.World.of("""
H1[V:8] @A,B
H2[V:2] @A
H3[V:4]
H4[V:1] @B
""")
UUIDS = {name: worlds.uuid_of(name) for name in ('H1', 'H2', 'H3', 'H4', 'A', 'B')}
AGGREGATES = {id_: uuid for uuid, id_ in WORLD.ids.aggregates.items()}


UNUSED = Fragmentation({'VCPU': 15}, {'VCPU': 1}, {'VCPU': 7}, None, None)


def headroom(query: str = 'resources=VCPU:2', fits: int = 7, **by: int) -> Headroom:
    by_uuid = {UUIDS.get(name, name): n for name, n in by.items()}
    return Headroom(query, '1.38', fits, 9, by_uuid, UNUSED)


class CountTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        query = WORLD.parse('resources=V:2&limit=1')
        self.steps = report.simulation_of(query, WORLD.anchors, None, silent).steps

    def test_by_tree(self):
        """The trees with the most claims are first; those without claims are left out."""
        by = report.by_tree(self.steps)
        self.assertEqual([(UUIDS['H1'], 4), (UUIDS['H3'], 2), (UUIDS['H2'], 1)], list(by.items()))

    def test_by_aggregate(self):
        """The sum exceeds the number of claims, because one root is in two aggregates."""
        by = report.by_aggregate(self.steps, AGGREGATES)
        self.assertEqual([(UUIDS['A'], 5), (UUIDS['B'], 4)], list(by.items()))

    def test_old_microversions(self):
        """Before microversion 1.29, a candidate uses one provider of a tree."""
        world = worlds.World.of('R[V:4]\n  C[D:4]')
        for minor, expected in ((28, 0), (29, 4)):
            query = world.parse('resources=V:1,D:1', worlds.Version(1, minor))
            simulation = report.simulation_of(query, world.anchors, None, silent)
            self.assertEqual(expected, simulation.fits)


class DocumentTest(base.BaseTestCase):
    def test_document(self):
        self.assertEqual(
            [
                {
                    'query': 'resources=VCPU:2',
                    'microversion': '1.38',
                    'fits': 7,
                    'at_most': 9,
                    'by': {UUIDS['H1']: 4, UUIDS['H3']: 3},
                    'lost': {'VCPU': 1},
                }
            ],
            render.document([headroom(H1=4, H3=3)]),
        )


class TextTest(base.BaseTestCase):
    NAMES = {UUIDS['H1']: 'one', UUIDS['H3']: 'thr\x1bee'}

    def test_by_tree(self):
        text = render.text([headroom(H1=4, H3=3)], TREE, self.NAMES, with_details=True)
        self.assertRegex(text, r'\| resources=VCPU:2 \| +7 \| +9 \|')
        self.assertRegex(text, rf'\| one +\| {UUIDS["H1"]} \| +4 \|')
        self.assertIn('thr\\x1bee', text)
        self.assertNotIn('not listed', text)
        self.assertNotIn('query 1', text)

    def test_by_aggregate(self):
        text = render.text([headroom(A=4)], AGGREGATE, {}, with_details=True)
        self.assertRegex(text, rf'\| {UUIDS["A"]} \| +4 \|')

    def test_trees_with_equally_many_claims_are_in_the_order_of_their_names(self):
        names = {'u1': 'host-2', 'u2': 'host-3', 'u3': 'host-1'}
        text = render.text([headroom(u1=1, u2=2, u3=1)], TREE, names, with_details=True)
        listed = [name for name in text.split() if name.startswith('host-')]
        self.assertEqual(['host-3', 'host-1', 'host-2'], listed)

    def test_the_rest_is_counted(self):
        by = {f'host-{n:02d}': 100 - n for n in range(13)}
        text = render.text([headroom(**by)], TREE, {}, with_details=True)
        self.assertIn('host-09', text)
        self.assertNotIn('host-10', text)
        self.assertIn('3 more trees with 267 claims are not listed.', text)
        text = render.text([headroom(**by)], AGGREGATE, {}, with_details=True)
        self.assertIn('3 more aggregates are not listed.', text)
        text = render.text([headroom(**dict(list(by.items())[:11]))], TREE, {}, with_details=True)
        self.assertIn('1 more tree with 90 claims is not listed.', text)

    def test_several_queries(self):
        results = [headroom(H1=4), headroom('resources=VCPU:100', fits=0)]
        text = render.text(results, TREE, self.NAMES, with_details=False)
        self.assertRegex(text, r'\| resources=VCPU:100 \| +0 \| +9 \|')
        self.assertNotIn('one', text)
        text = render.text(results, TREE, self.NAMES, with_details=True)
        self.assertIn('claims of query 1 fit', text)
        self.assertNotIn('query 2', text)

    def test_long_queries_are_wrapped(self):
        text = render.text([headroom('resources=' + 'VCPU:1,' * 50)], TREE, {}, with_details=True)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
