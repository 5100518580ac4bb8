"""The headroom of random clouds against the definition (`naive`), and of examples.

The promise of `headroom`: each simulated claim is granted in the given order, and afterwards the
query has no candidate.
"""

from typing import Any

import ddt
import hypothesis

from placement.admin.cloud import Cloud
from placement.admin.console import silent
from placement.admin.headroom import result, simulation
from placement.candidates import model
from placement.tests import worlds
from placement.tests.properties import REPEATABLE, UnmeasuredTestCase, seeds
from placement.tests.worlds import naive_headroom, seeded, strategies


def simulate(query: model.Query[int], world: worlds.World) -> Any:
    return simulation.of_query(query, world.anchors, silent)


def headroom(world: worlds.World, text: str) -> result.Headroom:
    """Return the result of a query with short names."""
    ids = (world.ids.classes, world.ids.traits)
    names = [{id_: name for name, id_ in of_kind.items()} for of_kind in ids]
    found = Cloud(world.providers, {}, {}, *names, {}, {}, (), 0, 0)
    return result.of_queries(found, [text], [world.parse(text)])[0]


class DefinitionTest(UnmeasuredTestCase):
    def check(self, query: model.Query[int], world: worlds.World) -> Any:
        """Check the promise, and return the simulation."""
        found = simulate(query, world)
        cloud = naive_headroom.Cloud(query, world)
        for step in found.steps:
            self.assertGreater(step.times, 0)
            for _ in range(step.times):
                roots = [root for root, binding in cloud.candidates() if binding == step.binding]
                # The anchor is the one with the smallest UUID.
                self.assertEqual(step.root.uuid, min(roots, default='none'), step)
                cloud.claim(step.binding)
        self.assertEqual([], list(cloud.candidates()))
        self.assertEqual(cloud.limit(), found.limit)
        return found

    def test_random_clouds(self):
        fitting = limited = 0
        of_test = seeds(900)
        for seed in of_test:
            case = seeded.search(seed)
            with self.subTest(seed=seed):
                found = self.check(case.query, case.world)
                fitting += bool(found.steps)
                limited += found.limit is not None and found.limit.lacking < found.limit.trees
        self.assertGreater(fitting, len(of_test) // 5)
        self.assertGreater(limited, len(of_test) // 30)

    @REPEATABLE
    @hypothesis.given(
        strategies.searches() | strategies.sharing_searches() | strategies.contended_searches()
    )
    def test_other_clouds(self, example):
        world, query = example
        self.check(query, world)

    def test_old_microversions(self):
        """Before microversion 1.29, a candidate uses one provider of a tree."""
        world = worlds.World.of('R[V:4]\n  C[D:4]')
        for minor, fits in ((28, 0), (29, 4)):
            query = world.parse('resources=V:1,D:1', worlds.Version(1, minor))
            steps = simulate(query, world).steps
            self.assertEqual(fits, sum(step.times for step in steps))


NODES = 'R\n  A[V:{}]\n  B[V:{}]'
SHARED = 'SS[D:{}] {{SHARE}} @A\n' + '\n'.join(f'H{n}[V:4] @A' for n in range(5))


@ddt.ddt
class ExamplesTest(UnmeasuredTestCase):
    @ddt.data(
        ('A[V:8, M:100, D:5]', 'resources=V:1,M:10,D:2', 2, 'DISK_GB: 1 of 1 trees lacks'),
        # Units that are left over on each provider.
        (NODES.format(5, 5), 'resources=V:3', 2, 'VCPU: 1 of 1 trees lacks'),
        # A sharing provider limits all its trees, or the trees are the limit.
        (SHARED.format(100), 'resources=V:1,D:10', 10, 'DISK_GB: 5 of 5 trees lack'),
        (SHARED.format(900), 'resources=V:1,D:10', 20, 'VCPU: 5 of 5 trees lack'),
        # Only trees that suit the query count.
        (
            'H1[V:2, D:90] {T1}\nH2[V:9, D:5]\nH3[D:50] {T1}\nH4[V:9, D:5] {T1}',
            'resources=V:1,D:10&required=T1',
            2,
            'VCPU: 1 of 2 trees lacks',
        ),
        # No class is the limit.
        ('H[VF:9]', 'resources1=VF:1&resources2=VF:1&group_policy=isolate', 0, None),
        # The first candidate uses the provider that alone could serve the other claim.
        (
            'R\n  A[V:2] {T1}\n  B[V:2]',
            'resources1=V:1&resources2=V:1&required2=T1&group_policy=none',
            1,
            'VCPU: 1 of 1 trees lacks',
        ),
        # The first search has 40,320 candidates, and each claim takes all devices.
        (
            '\n'.join(['R', *(f'  C{n}[VGPU:2]' for n in range(8))]),
            '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9)) + '&group_policy=isolate',
            2,
            'VGPU: 1 of 1 trees lacks',
        ),
        # The work does not grow with the number of claims.
        (NODES.format(10**6, 10**6), 'resources=V:1', 2 * 10**6, 'VCPU: 1 of 1 trees lacks'),
    )
    @ddt.unpack
    def test_the_number_of_claims_and_the_limit(self, drawing, text, fits, limit):
        found = headroom(worlds.World.of(drawing), text)
        self.assertEqual(fits, found.fits)
        self.assertEqual(f'The limit is {limit} it for one more.' if limit else '', found.reason)

    def test_the_smallest_uuid_of_the_anchors_of_sharing_providers(self):
        drawing = 'SS[D:10] {SHARE} @A\n' + '\n'.join(f'H{n} @A' for n in range(20))
        for reverse in (False, True):
            lines = sorted(drawing.splitlines(), reverse=reverse)
            world = worlds.World.of('\n'.join(lines))
            (step,) = simulate(world.parse('resources=D:2'), world).steps
            self.assertEqual(min(host.uuid for host in world.hosts), step.root.uuid)
            self.assertEqual(5, step.times)


class TextTest(UnmeasuredTestCase):
    def test_the_trees_with_the_most_claims_are_listed_in_the_order_of_their_names(self):
        drawing = '\n'.join(f'H{n}[V:{40 if n == 12 else 20}] @A' for n in range(13))
        world = worlds.World.of(drawing)
        names = {host.uuid: f'host-{number:02d}\x1b' for number, host in enumerate(world.hosts)}
        one, other = headroom(world, 'resources=V:2'), headroom(world, 'resources=V:50')
        text = result.text([one], None, names)
        self.assertEqual(
            '140 more of resources=V:2 fit. The limit is VCPU: 13 of 13 trees lack it for one '
            'more.',
            text.splitlines()[0],
        )
        listed = [word for word in text.split() if word.startswith('host-')]
        self.assertEqual([f'host-{n:02d}\\x1b' for n in (12, *range(9))], listed)
        self.assertIn('3 more trees with 30 claims are not listed.', text)
        text = result.text([one], result.AGGREGATE, names)
        self.assertIn('3 more aggregates are not listed.', text)
        text = result.text([one, other], result.TREE, names)
        self.assertIn('claims of query 1 fit', text)
        self.assertNotIn('query 2', text)
        self.assertNotIn('host', result.text([one, other], None, names))

    def test_the_command_for_a_query_that_fits_nowhere(self):
        found = headroom(worlds.World.of('H[V:1]'), 'resources=V:2&required=T1')
        lines = result.text([found], None, {}).splitlines()
        self.assertEqual('No more of resources=V:2&required=T1 fits.', lines[0])
        self.assertEqual("Run `placement-manage explain 'resources=V:2&required=T1'`.", lines[-1])

    def test_one_tree_is_not_listed(self):
        world = worlds.World.of('\n'.join(f'H{n}[V:9]' for n in range(11)))
        text = result.text([headroom(world, 'resources=V:3')], result.TREE, {})
        self.assertIn('1 more tree with 3 claims is not listed.', text)
        self.assertNotIn('query 1', text)
