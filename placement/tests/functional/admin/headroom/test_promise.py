"""The promise of headroom, over HTTP, in random clouds.

Sent to the API in the order of the file, all claims are granted; afterwards, the query has no
candidate. To check other clouds than the suite, set PLACEMENT_TEST_HEADROOM, for example to
`1000-2000`.
"""

from collections import Counter
import json
from typing import Any
import uuid

from placement import db_api
from placement.admin.headroom import claims, reading, report
from placement.admin.progress import silent
from placement.db import engine
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.properties import Seeds
from placement.tests.unit.admin.headroom import clouds
from placement.tests.worlds import rows as world_rows

OWNER = claims.Owner('project', 'user')


SEEDS = Seeds('PLACEMENT_TEST_HEADROOM', '0-60')


class PromiseTest(base.WorldTestCase):
    def test_all_claims_are_granted_and_then_there_is_no_candidate(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = clouds.case(seed)
            with self.subTest(seed=seed, query=case.text, version=str(case.version)):
                world_rows.fill(db_api.get_placement_engine(), case.world)
                counts.update(self._check(case))
        SEEDS.show(counts)
        self.assertGreater(counts['queries with claims'], len(SEEDS.range) // 4)

    def _check(self, case: clouds.Case) -> Counter[str]:
        path = f'/allocation_candidates?{case.world.query(case.text)}'
        version = str(case.version)
        before = self.send_ok('GET', path, version=version)
        bodies = self._claims(case)
        self.assertEqual(bool(before['allocation_requests']), bool(bodies))
        for body in bodies:
            response = self.send('PUT', f'/allocations/{uuid.uuid4()}', body)
            self.assertEqual(204, response.status_code, response.text)
        after = self.send_ok('GET', path, version=version)
        self.assertEqual([], after['allocation_requests'])
        return Counter({'queries': 1, 'queries with claims': bool(bodies), 'claims': len(bodies)})

    def _claims(self, case: clouds.Case) -> list[Any]:
        queries = reading.parse([case.world.query(case.text)], case.version)
        with engine.snapshot() as conn:
            cloud = reading.read(conn, queries, silent, with_aggregates=False, with_names=False)
        (query,) = cloud.queries
        simulation = report.simulation_of(query, cloud.anchors, cloud.sharing_id, silent)
        lines = claims.lines(simulation.steps, queries[0], query, cloud.anchors, OWNER)
        bodies = [json.loads(line.text) for line in lines for _ in range(line.times)]
        self.assertEqual(simulation.fits, len(bodies))
        return bodies


class ReadingTest(base.TestCase):
    """The number of statements does not depend on the size of the cloud."""

    def test_statements(self):
        world = worlds.World.of(
            'SS[D:10] {SHARE} @A\n' + '\n'.join(f'H{n}[V:2] @A' for n in range(9))
        )
        queries = ['resources=V:1', 'resources=V:1,D:1']
        for size in (2, 10):
            part = worlds.World(world.hosts[:size])
            world_rows.fill(db_api.get_placement_engine(), part)
            with self.counted() as counts, engine.snapshot() as conn:
                parsed = reading.parse([world.query(query) for query in queries], worlds.NEWEST)
                cloud = reading.read(conn, parsed, silent, with_aggregates=True, with_names=True)
            self.assertEqual(size, len(cloud.anchors))
            # The names of each query, sharing providers, a page, aggregates, and names of roots.
            self.assertEqual(6, counts['all'])
