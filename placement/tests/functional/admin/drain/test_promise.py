"""The promise of drain, over HTTP, in random clouds.

Sent to the API in the order of the file, all moves are granted; after a drain that fits, the trees
are empty. To check other clouds than the suite, set PLACEMENT_TEST_DRAIN, for example to
`1000-2000`.
"""

from collections import Counter
import json
import os
from typing import Any

from placement import db_api
from placement.admin import named_trees
from placement.admin.drain import moves, reading, report
from placement.admin.drain.requests import Consumer
from placement.admin.progress import silent
from placement.db import engine
from placement.tests import servers, worlds
from placement.tests.functional import base
from placement.tests.functional.admin.drain import rows
from placement.tests.properties import Seeds
from placement.tests.unit.admin.drain import clouds

# On a server, the same statements only have to be valid there.
SEEDS = Seeds('PLACEMENT_TEST_DRAIN', '0-15' if servers.ADMIN_URL in os.environ else '0-40')


class PromiseTest(base.WorldTestCase):
    def test_all_moves_are_granted_and_then_the_trees_are_empty(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = clouds.case(seed)
            with self.subTest(seed=seed, style=case.style):
                rows.fill(db_api.get_placement_engine(), case)
                counts += self._check(case)
        SEEDS.show(counts)
        self.assertGreater(counts['fits'], len(SEEDS.range) // 6)
        self.assertGreater(counts['moves'], len(SEEDS.range))

    def _check(self, case: clouds.Case) -> Counter[str]:
        drain, consumers, lines = self._plan(case)
        expected, _ = report.Planner(case.cloud, case.conditions).drain(case.affected, case.roots)
        self.assertEqual(expected.verdict, drain.verdict)
        for line in lines:
            self.assertEqual('consumer_type' in line['body'], line['microversion'] == '1.39')
            path = f'/allocations/{line["consumer"]}'
            before = self.send_ok('GET', path)
            response = self.send('PUT', path, line['body'], line['microversion'])
            self.assertEqual(204, response.status_code, response.text)
            self._check_move(line, before, self.send_ok('GET', path))
        if drain.verdict == report.FITS:
            self._check_empty(case, consumers)
        return Counter({'drains': 1, drain.verdict: 1, 'moves': len(lines)})

    def _plan(self, case: clouds.Case) -> tuple[report.Drain, list[Consumer], list[Any]]:
        with engine.snapshot() as conn:
            cloud, conditions = reading.cloud(conn, case.options, silent)
            if case.moving:
                consumers = reading.consumers(conn, case.moving)
            else:
                roots = named_trees.require_roots(conn, self._some_providers(case))
                consumers = reading.consumers_of_trees(conn, roots)
                self.assertEqual(case.roots, frozenset(roots))
            planner = report.Planner(cloud, conditions)
            drain, found = planner.drain(consumers, case.roots)
            owners = reading.owners(conn, [move.request.consumer.uuid for move in found])
            lines = [json.loads(line) for line in moves.lines(cloud, found, owners)]
        return drain, consumers, lines

    def _some_providers(self, case: clouds.Case) -> list[str]:
        """Return the name or the UUID of any providers of the drained trees."""
        last = {p.root_id: p for p in case.world.providers if p.root_id in (case.roots or ())}
        names = [case.world.names[provider.uuid] for provider in last.values()]
        return [*names, *(provider.uuid.upper() for provider in last.values())]

    def _check_move(self, line: Any, before: Any, after: Any) -> None:
        """The owner stays, and only the providers of the old trees are left."""
        kept = ('project_id', 'user_id', 'consumer_type')
        self.assertEqual([before[key] for key in kept], [after[key] for key in kept])
        roots = {uuid: self._root(uuid) for uuid in before['allocations']}
        for uuid in after['allocations']:
            self.assertNotIn(roots.get(uuid), line['from'])
        self.assertTrue({*roots.values()} >= {*line['from']})
        sums = [
            sum((Counter(one['resources']) for one in body['allocations'].values()), Counter())
            for body in (before, after)
        ]
        self.assertEqual(*sums)

    def _root(self, uuid: str) -> Any:
        return self.send_ok('GET', f'/resource_providers/{uuid}')['root_provider_uuid']

    def _check_empty(self, case: clouds.Case, consumers: list[Consumer]) -> None:
        moved = {consumer.uuid for consumer in consumers}
        for provider in case.world.providers:
            if case.roots is not None and provider.root_id in case.roots:
                path = f'/resource_providers/{provider.uuid}/allocations'
                self.assertEqual({}, self.send_ok('GET', path)['allocations'])
        self.assertTrue(moved or not case.affected)


class ReadingTest(base.TestCase):
    """The number of statements does not depend on the number of hosts and consumers."""

    def test_statements(self):
        hosts = [f'H{number}[V:9] @A' for number in range(6)]
        for size in (2, 6):
            case = clouds.Case(
                style='sharing',
                empty=worlds.World.of('\n'.join([*hosts[:size], 'SS[D:100] {SHARE} @A'])),
                consumers=tuple(
                    clouds.consumer(f'{n}', None, (n, 'V', 1), (size + 1, 'D', 2))
                    for n in range(1, size + 1)
                ),
                drained=(),
                moving=(),
                options=reading.Options(),
            )
            rows.fill(db_api.get_placement_engine(), case)
            with self.counted() as counts, engine.snapshot() as conn:
                cloud, _ = reading.cloud(conn, reading.Options(), silent)
                (page,) = reading.pages_of_trees(conn, cloud, list(cloud.anchors))
                owners = reading.owners(conn, [consumer.uuid for consumer in case.consumers])
            self.assertEqual([1] * size + [size], [len(found) for found in page.values()])
            self.assertEqual(size, len(owners))
            # The names of --where, all traits, sharing providers, a page of trees, the names of
            # roots, all classes, a page of consumers, and their owners.
            self.assertEqual(8, counts['all'])
