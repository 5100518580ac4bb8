"""The simulation against the definition (`naive`), in random clouds.

The promise of `headroom`: each simulated claim is granted in the given order, and afterwards the
query has no candidate.
"""

import math
from unittest import mock

import hypothesis
from oslotest import base

from placement.admin.headroom import simulation
from placement.admin.headroom.free_capacity import amounts_of
from placement.admin.headroom.simulation import Simulation
from placement.candidates import model, solver
from placement.tests import worlds
from placement.tests.properties import REPEATABLE, UnmeasuredTestCase, seeds
from placement.tests.unit.admin.headroom import clouds
from placement.tests.unit.admin.headroom.definition import Cloud, simulate
from placement.tests.worlds import strategies

SEEDS = seeds(400)


class PromiseTest(UnmeasuredTestCase):
    """Each claim is a candidate, and afterwards there is none."""

    def check(self, query: model.Query[int], world: worlds.World) -> Simulation:
        result = simulate(query, world)
        cloud = Cloud(query, world)
        for step in result.steps:
            self.assertGreater(step.times, 0)
            for _ in range(step.times):
                roots = [root for root, binding in cloud.candidates() if binding == step.binding]
                # The anchor is the one with the smallest UUID.
                self.assertEqual(step.root.uuid, min(roots, default='none'), step)
                cloud.claim(step.binding)
        self.assertEqual([], list(cloud.candidates()))
        self.assertGreaterEqual(result.at_most, result.fits)
        return result

    def test_clouds_of_all_microversions(self):
        fitting = 0
        for seed in SEEDS:
            with self.subTest(seed=seed):
                case = clouds.case(seed)
                fitting += self.check(case.query, case.world).fits > 0
        self.assertGreater(fitting, len(SEEDS) // 4)

    @REPEATABLE
    @hypothesis.given(strategies.searches() | strategies.sharing_searches())
    def test_other_clouds(self, example):
        world, query = example
        self.check(query, world)

    @REPEATABLE
    @hypothesis.given(strategies.contended_searches())
    def test_groups_of_one_class(self, example):
        world, query = example
        self.check(query, world)

    def test_any_restart(self):
        """Whenever a new search begins, the promise holds."""
        for factor in (0, math.inf):
            with mock.patch.object(simulation, 'RESTART_AFTER', factor):
                for seed in seeds(200):
                    with self.subTest(factor=factor, seed=seed):
                        case = clouds.case(seed)
                        self.check(case.query, case.world)


class WorkTest(base.BaseTestCase):
    """The work does not grow with the number of claims or of candidates that no longer fit."""

    def examined(self, world: worlds.World, query: str) -> tuple[int, int]:
        """Return the number of claims, and the number of candidates that were examined."""
        with mock.patch.object(simulation, 'amounts_of', wraps=amounts_of) as amounts:
            result = simulate(world.parse(query), world)
        return result.fits, amounts.call_count

    def test_identical_claims_are_one_step(self):
        world = worlds.World.of('R\n  A[V:1000000]\n  B[V:1000000]')
        self.assertEqual((2_000_000, 2), self.examined(world, 'resources=V:1'))

    def test_candidates_that_no_longer_fit_are_not_all_examined(self):
        """The first search has 40,320 candidates, and each claim takes all devices."""
        drawing = '\n'.join(['R', *(f'  C{n}[VGPU:2]' for n in range(8))])
        groups = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9))
        fits, examined = self.examined(worlds.World.of(drawing), f'{groups}&group_policy=isolate')
        self.assertEqual(2, fits)
        self.assertLess(examined, 100)

    def test_progress_is_reported_for_each_anchor(self):
        world = worlds.World.of('\n'.join(f'H{n}[V:1]' for n in range(600)))
        prepared = solver.PreparedQuery.of(world.parse('resources=V:1'))
        reported: list[int] = []
        simulation.simulate(prepared, world.anchors, None, reported.append)
        self.assertEqual(600, sum(reported))
        self.assertLess(len(reported), 10)


class AnchorTest(base.BaseTestCase):
    """A candidate of sharing providers alone is counted for the smallest UUID of its anchors."""

    def test_smallest_uuid(self):
        drawing = 'SS[D:10] {SHARE} @A\n' + '\n'.join(f'H{n} @A' for n in range(20))
        for reverse in (False, True):
            lines = sorted(drawing.splitlines(), reverse=reverse)
            world = worlds.World.of('\n'.join(lines))
            (step,) = simulate(world.parse('resources=D:2'), world).steps
            self.assertEqual(min(host.uuid for host in world.hosts), step.root.uuid)
            self.assertEqual(5, step.times)
