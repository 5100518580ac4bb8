"""The explanation of random queries on random worlds is that of the naive definition.

The environment variable PLACEMENT_TEST_EXPLAIN sets the seeds, for example 0-2000.
"""

from collections import Counter
import random
from urllib import parse

import fixtures
from oslotest import base

from placement.admin import progress
from placement.admin.explain import explanation, model
from placement.microversion import Version
from placement.tests.functional.admin.explain import cases, naive
from placement.tests.properties import Seeds
from placement.tests.worlds import rows

# The number of queries on each world.
QUERIES = 4
SEEDS = Seeds('PLACEMENT_TEST_EXPLAIN', '0-75')


class NaiveTest(base.BaseTestCase):
    def test_random_queries(self) -> None:
        sizes: Counter[int] = Counter()
        self.useFixture(fixtures.MockPatchObject(explanation, 'NEAR_TREES_PER_BATCH', 2))
        with rows.database() as conn:
            for seed in SEEDS.range:
                rng = random.Random(seed)
                world = cases.world(rng)
                rows.fill(conn, world, names=True)
                for _ in range(QUERIES):
                    pairs, version = cases.query(rng, world)
                    subject = explanation.Subject(parse.urlencode(pairs), version, -1, 99)
                    found = explanation.explain(conn, subject, progress.silent)
                    try:
                        self.check(naive.Cloud(world), pairs, version, found)
                    except Exception:
                        print(f'Seed {seed}, microversion {version}: {pairs}')
                        raise
                    if not found.candidates.count:
                        sizes[len(found.relaxations[0].without) if found.relaxations else 0] += 1
        # Many queries have relaxations of one condition, of two conditions, and none.
        self.assertGreater(
            min(sizes[0], sizes[1], sizes[2]), QUERIES * len(SEEDS.range) // 20, sizes
        )

    def check(
        self,
        cloud: naive.Cloud,
        pairs: cases.Pairs,
        version: Version,
        found: model.Explanation,
    ) -> None:
        every = naive.conditions(pairs, version)
        nested = version >= (1, 29)
        self.assertEqual(sorted(c.key for c in every), sorted(found.conditions))
        self.assertEqual(naive.trees(cloud, every, (), nested), found.candidates.count)
        if not nested:
            self.assertEqual(naive.trees(cloud, every, (), True), found.nested.count)
        expected = naive.relaxations(cloud, every, nested)
        self.assertEqual(expected, {frozenset(r.without): r.trees.count for r in found.relaxations})
        for relaxation in found.relaxations:
            self.assertEqual(
                naive.most_free(cloud, every, relaxation.without),
                {
                    key: (m.free.amount, m.free.provider, m.max_unit.amount, m.max_unit.provider)
                    for key, m in relaxation.most_free.items()
                },
            )
        for of_group in found.funnel:
            self.assertEqual(
                naive.funnel(cloud, every, of_group.suffix, dict(of_group.amounts)),
                list(of_group.providers.values()),
            )
        self.check_nearest(cloud, every, found)

    def check_nearest(
        self, cloud: naive.Cloud, every: list[naive.Condition], found: model.Explanation
    ) -> None:
        failures = {
            root.name: {c.key for c in every if cloud.fails_alone(c, root)} for root in cloud.roots
        }
        expected = sorted(failures.items(), key=lambda item: (len(item[1]), item[0]))
        self.assertEqual(
            expected, [(tree.name, {f.key for f in tree.failures}) for tree in found.nearest]
        )
