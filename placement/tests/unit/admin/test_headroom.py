"""The headroom of random clouds against the definition (`naive`), and of examples.

The promise of `headroom`: each simulated claim is granted in the given order, and afterwards the
query has no candidate.
"""

from typing import Any
from unittest import mock

import ddt
import hypothesis

from placement.admin.headroom import render, report
from placement.admin.progress import silent
from placement.candidates import model
from placement.tests import worlds
from placement.tests.properties import REPEATABLE, UnmeasuredTestCase, seeds
from placement.tests.worlds import naive_headroom, seeded, strategies

# The maximum number of simulated claims in a cloud in which all orders of claims are tried.
_FEW = 5


def simulate(query: model.Query[int], world: worlds.World) -> Any:
    return report.simulation_of(query, world.anchors, world.sharing_id, silent)


def headroom(world: worlds.World, text: str) -> report.Headroom:
    """Return the result of a query with short names."""
    query = world.parse(text)
    found = simulate(query, world)
    names, by = world.unbind(query), report.by_tree(found.steps)
    unused = report.fragmentation_of(query, names, world.anchors, found.steps)
    return report.Headroom(text, '1.39', found.fits, found.at_most, by, unused)


class DefinitionTest(UnmeasuredTestCase):
    def check(self, query: model.Query[int], world: worlds.World) -> Any:
        """Check the promise, and return the simulation."""
        result = simulate(query, world)
        cloud = naive_headroom.Cloud(query, world)
        for step in result.steps:
            self.assertGreater(step.times, 0)
            for _ in range(step.times):
                roots = [root for root, binding in cloud.candidates() if binding == step.binding]
                # The anchor is the one with the smallest UUID.
                self.assertEqual(step.root.uuid, min(roots, default='none'), step)
                cloud.claim(step.binding)
        self.assertEqual([], list(cloud.candidates()))
        self.assertEqual(result.fits, sum(step.times for step in result.steps))
        self.assertGreaterEqual(result.at_most, result.fits)
        return result

    def test_random_clouds(self):
        fitting = bounded = equal = lossy = 0
        of_test = seeds(900)
        for seed in of_test:
            case = seeded.search(seed)
            with self.subTest(seed=seed):
                result = self.check(case.query, case.world)
                fitting += result.fits > 0
                if 0 < result.fits <= _FEW and len(result.steps) > 1:
                    bounded += 1
                    most = naive_headroom.Cloud(case.query, case.world).most_claims({})
                    self.assertLessEqual(result.fits, most)
                    self.assertLessEqual(most, result.at_most)
                if _is_simple(case):
                    equal += result.fits > 0
                    self.assertEqual(result.at_most, result.fits)
                lossy += self.check_fragmentation(case, result)
        self.assertGreater(min(fitting, lossy), len(of_test) // 5)
        self.assertGreater(min(bounded, equal), len(of_test) // 30)

    def check_fragmentation(self, case: seeded.Search, result: Any) -> bool:
        query, world = case.query, case.world
        found = report.fragmentation_of(query, world.unbind(query), world.anchors, result.steps)
        free = naive_headroom.free_capacity(query, world)
        amounts = dict.fromkeys(query.classes, 0)
        for group in query.groups:
            for class_id, amount in group.amounts:
                amounts[class_id] += amount
        names = {id_: name for name, id_ in world.ids.classes.items()}
        self.assertEqual({names[id_]: n for id_, n in free.items()}, dict(found.free))
        for class_id, amount in amounts.items():
            name = names[class_id]
            self.assertEqual(free[class_id] - result.fits * amount, found.lost[name])
            self.assertGreaterEqual(found.lost[name], 0)
            self.assertGreaterEqual(found.alone[name], result.fits)
        return found.most is not None

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
            self.assertEqual(fits, simulate(query, world).fits)


def _is_simple(case: seeded.Search) -> bool:
    """Whether the guide promises that the bound equals the number of claims."""
    query, world = case.query, case.world
    return (
        len(query.groups) == 1
        and not any(anchor.sharing_providers for anchor in world.anchors)
        and all(
            sum(class_id in p.inventories for p in anchor.tree) <= 1
            for anchor in world.anchors
            for class_id in query.classes
        )
    )


NODES = 'R\n  A[V:{}]\n  B[V:{}]'
PAIR = 'resources1=V:1&resources2=V:{}&group_policy={}'
SHARED = 'SS[D:{}] {{SHARE}} @A\n' + '\n'.join(f'H{n}[V:4] @A' for n in range(5))


@ddt.ddt
class ExamplesTest(UnmeasuredTestCase):
    @ddt.data(
        # The scarcest class.
        ('A[V:8, M:100, D:5]', 'resources=V:1,M:10,D:2', 2, 2),
        # Units that are left over on each provider.
        (NODES.format(5, 5), 'resources=V:3', 2, 2),
        # Groups of one kind, and of one class.
        (NODES.format(3, 2), PAIR.format(1, 'none'), 2, 2),
        (NODES.format(3, 2), PAIR.format(2, 'none'), 1, 1),
        # Groups that use different providers.
        (NODES.format(8, 2), PAIR.format(1, 'none'), 5, 5),
        (NODES.format(8, 2), PAIR.format(1, 'isolate'), 2, 2),
        # A sharing provider limits all its trees, or the trees are the limit.
        (SHARED.format(100), 'resources=V:1,D:10', 10, 10),
        (SHARED.format(900), 'resources=V:1,D:10', 20, 20),
        # Together, the trees of a sharing provider have enough of each class for 11 claims.
        ('SS[D:900] {SHARE} @A\nX[V:10, M:1] @A\nY[V:1, M:10] @A', 'resources=V:1,M:1,D:1', 2, 2),
        # S2 serves both trees, but its capacity counts once.
        (
            'S1[D:10] {SHARE} @A\nS2[D:10] {SHARE} @B\nH1[V:9] @A,B\nH2[V:9] @B',
            'resources=V:1,D:10',
            2,
            2,
        ),
        # The trees do not use the same sharing provider.
        (
            'S1[D:30] {SHARE} @A\nS2[D:20] {SHARE} @B\nH1[V:9] @A\nH2[V:9] @B',
            'resources=V:1,D:10',
            5,
            5,
        ),
        # Trees without a candidate do not count.
        ('A[V:8] {T1}', 'resources=V:1&required=T2', 0, 0),
        ('A[V:8]\n  B[D:8]', 'resources=V:1,D:1&root_required=T1', 0, 0),
        # The first candidate uses the provider that alone could serve the other claim.
        (
            'R\n  A[V:2] {T1}\n  B[V:2]',
            'resources1=V:1&resources2=V:1&required2=T1&group_policy=none',
            1,
            2,
        ),
        # The first search has 40,320 candidates, and each claim takes all devices.
        (
            '\n'.join(['R', *(f'  C{n}[VGPU:2]' for n in range(8))]),
            '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9)) + '&group_policy=isolate',
            2,
            2,
        ),
        # The work does not grow with the number of claims.
        (NODES.format(10**6, 10**6), 'resources=V:1', 2 * 10**6, 2 * 10**6),
    )
    @ddt.unpack
    def test_the_number_of_claims_and_the_bound(self, drawing, text, fits, at_most):
        found = headroom(worlds.World.of(drawing), text)
        self.assertEqual((fits, at_most), (found.fits, found.at_most))

    @ddt.data(
        (
            'H1[V:8, M:100]\nH2[V:2, M:20]',
            'resources=V:2,M:10',
            '5 fit; by memory alone 12 would: 58 % of the free memory is unusable for it, mostly '
            'for lack of VCPU.',
        ),
        (
            'H1[V:3]\nH2[V:3]\nH3[V: total 5 used 9]',
            'resources=V:2',
            '2 fit; by VCPU alone 3 would: 33 % of the free VCPU is unusable for it, mostly in '
            'remainders that are too small for a claim.',
        ),
        # Hosts without the trait, and without an inventory of the other class, are no part of it.
        (
            'H1[V:2, D:90] {T1}\nH2[V:9, D:5]\nH3[D:50] {T1}',
            'resources=V:1,D:10&required=T1',
            '2 fit; by disk alone 9 would: 77 % of the free disk is unusable for it, mostly for '
            'lack of VCPU.',
        ),
        (
            'H1\n  N1[VF:9]\n  N2[VF:1]',
            'resources1=VF:1&resources2=VF:1&group_policy=isolate',
            '1 fit; by SRIOV_NET_VF alone 5 would: 80 % of the free SRIOV_NET_VF is unusable for '
            'it, mostly because of other conditions.',
        ),
        (
            'H1[V:9099, M:11300]',
            'resources=V:1,M:1',
            '9,099 fit; by memory alone 11,300 would: 19 % of the free memory is unusable for it, '
            'mostly for lack of VCPU.',
        ),
        ('H1[V:4]\nH2[V:3]', 'resources=V:2', None),
        ('H1[M:4]', 'resources=V:2', None),
    )
    @ddt.unpack
    def test_the_sentence_about_the_lost_capacity(self, drawing, text, sentence):
        found = headroom(worlds.World.of(drawing), text)
        self.assertEqual(sentence, render.lost_sentence(found))
        lines = render.text([found] * 2, report.TREE, {}, with_details=False).splitlines()
        self.assertEqual(f'Query 2: {sentence}' if sentence else lines[-1], lines[-1])

    def test_the_smallest_uuid_of_the_anchors_of_sharing_providers(self):
        drawing = 'SS[D:10] {SHARE} @A\n' + '\n'.join(f'H{n} @A' for n in range(20))
        for reverse in (False, True):
            lines = sorted(drawing.splitlines(), reverse=reverse)
            world = worlds.World.of('\n'.join(lines))
            (step,) = simulate(world.parse('resources=D:2'), world).steps
            self.assertEqual(min(host.uuid for host in world.hosts), step.root.uuid)
            self.assertEqual(5, step.times)

    def test_progress_is_reported_for_many_anchors_at_once(self):
        world = worlds.World.of('\n'.join(f'H{n}[V:1]' for n in range(600)))
        reported: list[int] = []
        progress = mock.Mock()
        progress.return_value.__enter__ = lambda _: reported.append
        progress.return_value.__exit__ = mock.Mock(return_value=None)
        report.simulation_of(world.parse('resources=V:1'), world.anchors, None, progress)
        self.assertEqual(600, sum(reported))
        self.assertLess(len(reported), 10)


class TextTest(UnmeasuredTestCase):
    def test_the_trees_with_the_most_claims_are_listed_in_the_order_of_their_names(self):
        drawing = '\n'.join(f'H{n}[V:{40 if n == 12 else 20}] @A' for n in range(13))
        world = worlds.World.of(drawing)
        names = {host.uuid: f'host-{number:02d}\x1b' for number, host in enumerate(world.hosts)}
        one, other = headroom(world, 'resources=V:2'), headroom(world, 'resources=V:50')
        text = render.text([one], report.TREE, names, with_details=True)
        listed = [word for word in text.split() if word.startswith('host-')]
        self.assertEqual([f'host-{n:02d}\\x1b' for n in (12, *range(9))], listed)
        self.assertIn('3 more trees with 30 claims are not listed.', text)
        text = render.text([one], report.AGGREGATE, names, with_details=True)
        self.assertIn('3 more aggregates are not listed.', text)
        text = render.text([one, other], report.TREE, names, with_details=True)
        self.assertIn('claims of query 1 fit', text)
        self.assertNotIn('query 2', text)
        self.assertNotIn('host', render.text([one, other], report.TREE, names, with_details=False))

    def test_one_tree_is_not_listed(self):
        world = worlds.World.of('\n'.join(f'H{n}[V:9]' for n in range(11)))
        text = render.text([headroom(world, 'resources=V:3')], report.TREE, {}, with_details=True)
        self.assertIn('1 more tree with 3 claims is not listed.', text)
        self.assertNotIn('query 1', text)

    def test_long_queries_are_wrapped(self):
        world = worlds.World.of('H[V:100]')
        long = headroom(
            world, '&'.join(f'resources{n}=V:1' for n in range(50)) + '&group_policy=none'
        )
        text = render.text([long], report.TREE, {}, with_details=True)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
