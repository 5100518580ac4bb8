"""The result with `--assume` is the result after the same changes through the API.

The environment variable PLACEMENT_TEST_ASSUME sets the seeds, for example 0-500 for 2,000 queries.
"""

from collections import Counter
from collections.abc import Iterable
import os
from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.admin.assume import apply
from placement.admin.explain import explanation
from placement.admin.explain import render as explain_render
from placement.admin.failure import CannotProceedError
from placement.admin.headroom import reading, render, report
from placement.admin.progress import silent
from placement.cmd import assume
from placement.db import engine
from placement.tests import servers
from placement.tests.functional import base
from placement.tests.functional.admin.assume import cases, requests
from placement.tests.properties import Seeds
from placement.tests.unit.admin.headroom import clouds

# On a server, the same statements only have to be valid there.
SEEDS = Seeds('PLACEMENT_TEST_ASSUME', '6-12' if servers.ADMIN_URL in os.environ else '0-12')
Document = dict[str, Any]
Usages = dict[tuple[str, str], int]


class RandomWorldsTest(base.WorldTestCase):
    def test_assumed_results_are_those_after_requests(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = cases.case(seed)
            with self.subTest(seed=seed, changes=case.changes):
                cases.fill(db_api.get_placement_engine(), case.world, seed)
                counts += self._compare(case)
        SEEDS.show(counts)
        self.assertGreater(2 * counts['changed'], counts['queries'])
        self.assertGreater(counts['queries'], 2 * len(SEEDS.range))
        self.assertLess({'without', 'copies', 'set', 'trait', 'aggregate'}, counts.keys())

    def _compare(self, case: cases.Case) -> Counter[str]:
        before, _ = results(case.queries, ())
        exceeded = self._exceeded()
        try:
            assumed, members = results(case.queries, case.changes)
        except CannotProceedError:
            self.assertRaises(requests.RefusedError, self._change, case)
            return Counter(['refused'])
        self._change(case)
        after, _ = results(case.queries, ())
        for query, found, expected in zip(case.queries, assumed, after, strict=True):
            self.assertEqual(expected, found, query)
        over = self._over(exceeded)
        self.assertEqual({'assumptions': list(case.changes), 'over': over}, members)
        changed = sum(one != other for one, other in zip(before, assumed, strict=True))
        fits = sum(
            one['headroom'] != other['headroom'] for one, other in zip(before, assumed, strict=True)
        )
        kinds = Counter(change.partition(':')[0] for change in case.changes)
        return kinds + Counter(queries=len(assumed), changed=changed, fits=fits, over=bool(over))

    def _change(self, case: cases.Case) -> None:
        for change in case.changes:
            requests.change(self, change)

    def _over(self, before: Usages) -> Document:
        over: Document = {}
        for (provider, class_name), amount in self._exceeded().items():
            more = amount - before.get((provider, class_name), 0)
            if more > 0:
                of_class = over.setdefault(class_name, {'inventories': 0, 'amount': 0})
                of_class['inventories'] += 1
                of_class['amount'] += more
        return over

    def _exceeded(self) -> Usages:
        """Return (provider, class) -> usage above the capacity, as the API returns them."""
        exceeded = {}
        for provider in self.send_ok('GET', '/resource_providers')['resource_providers']:
            path = f'/resource_providers/{provider["uuid"]}'
            usages = self.send_ok('GET', f'{path}/usages')['usages']
            for name, one in self.send_ok('GET', f'{path}/inventories')['inventories'].items():
                capacity = int((one['total'] - one['reserved']) * one['allocation_ratio'])
                if usages[name] > capacity:
                    exceeded[provider['uuid'], name] = usages[name] - capacity
        return exceeded


def results(
    queries: Iterable[clouds.Case], changes: tuple[str, ...]
) -> tuple[list[Document], Document]:
    """Return what explain and headroom print for each query, and what the changes add to it."""
    with (
        engine.snapshot() as source,
        apply.assumed(source, assume.parse(changes), silent) as assumed,
    ):
        found = [
            {'explain': explain(query, assumed.conn), 'headroom': headroom(query, assumed.conn)}
            for query in queries
        ]
        return found, assume.document(assumed)


def explain(query: clouds.Case, conn: sa.Connection) -> Document:
    subject = explanation.Subject(query.world.query(query.text), query.version, -1, 5)
    return explain_render.document(explanation.explain(conn, subject, silent))


def headroom(query: clouds.Case, conn: sa.Connection) -> list[Document]:
    """Return the document, with the claims by tree and by aggregate, and the lost capacity."""
    text = query.world.query(query.text)
    parsed = reading.parse([text], query.version)
    cloud = reading.read(conn, parsed, silent, with_aggregates=True, with_names=True)
    (named,), (ids,) = parsed, cloud.queries
    simulation = report.simulation_of(ids, cloud.anchors, cloud.sharing_id, silent)
    by_tree = report.by_tree(simulation.steps)
    by_aggregate = report.by_aggregate(simulation.steps, cloud.aggregates)
    unused = report.fragmentation_of(ids, named, cloud.anchors, simulation.steps)
    return render.document(
        [
            report.Headroom(
                text, str(query.version), simulation.fits, simulation.at_most, by, unused
            )
            for by in (by_tree, by_aggregate)
        ]
    )
