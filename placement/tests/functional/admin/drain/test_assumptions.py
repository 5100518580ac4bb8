"""The result of drain with `--assume` is the result after the same changes through the API.

To check other clouds than the suite, set PLACEMENT_TEST_DRAIN, for example to `1000-2000`.
"""

from collections import Counter
from collections.abc import Sequence
import os
import random
from typing import Any

from placement import db_api
from placement.admin.assume import apply
from placement.admin.drain import reading, render, report
from placement.admin.failure import CannotProceedError
from placement.admin.progress import silent
from placement.cmd import assume
from placement.db import engine
from placement.tests import servers, worlds
from placement.tests.functional import base
from placement.tests.functional.admin.assume import requests
from placement.tests.functional.admin.drain import rows
from placement.tests.properties import Seeds
from placement.tests.unit.admin.drain import clouds

# On a server, the same statements only have to be valid there.
SEEDS = Seeds('PLACEMENT_TEST_DRAIN', '0-4' if servers.ADMIN_URL in os.environ else '0-12')


class AssumptionsTest(base.WorldTestCase):
    def test_assumed_results_are_those_after_requests(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = clouds.case(seed)
            changes = [changed(random.Random(seed + n), case) for n in range(2)]
            with self.subTest(seed=seed, changes=changes):
                rows.fill(db_api.get_placement_engine(), case)
                counts += self._compare(case, changes)
        SEEDS.show(counts)
        self.assertGreater(counts['changed'], len(SEEDS.range) // 4)

    def _compare(self, case: clouds.Case, changes: Sequence[str]) -> Counter[str]:
        before = results(case, ())
        try:
            assumed = results(case, changes)
        except CannotProceedError:
            self.assertRaises(requests.RefusedError, self._change, changes)
            return Counter(['refused'])
        self._change(changes)
        self.assertEqual(results(case, ()), assumed)
        return Counter(drains=len(assumed), changed=before != assumed)

    def _change(self, changes: Sequence[str]) -> None:
        for change in changes:
            requests.change(self, change)


def changed(rng: random.Random, case: clouds.Case) -> str:
    """Return a change. The drained trees stay."""
    roots = [host.name for host in case.empty.hosts if host.parent is None]
    stays = [name for name in roots if name not in case.drained]
    host = rng.choice(stays or roots)
    name, trait, aggregate = f'?name={host}', worlds.trait('T1'), worlds.uuid_of('A')
    return rng.choice(
        (
            f'without:{host}' if stays and not case.moving else f'copies:2*{host}',
            f'copies:1*{host}',
            f'set:VCPU.total={rng.randint(2, 20)}',
            'set:VCPU.allocation_ratio=2.0',
            f'trait:+{worlds.trait("DISABLED")}{name}',
            f'trait:{rng.choice("+-")}{trait}{name}',
            f'aggregate:{rng.choice("+-")}{aggregate}{name}',
        )
    )


def results(case: clouds.Case, changes: Sequence[str]) -> list[Any]:
    """Return the documents of the drain of a case, and of each tree by itself."""
    parsed = assume.parse(changes)
    with engine.snapshot() as source:
        given = () if case.moving else case.drained
        copied = reading.roots_to_copy(source, given, case.moving)
        with apply.assumed(source, parsed, silent, copied) as one:
            cloud, conditions = reading.cloud(one.conn, case.options, silent)
            planner = report.Planner(cloud, conditions)
            if case.moving:
                consumers = reading.consumers(one.conn, case.moving)
            else:
                consumers = reading.consumers_of_trees(one.conn, case.roots or ())
            found = [planner.drain(consumers, case.roots)[0]]
        with apply.assumed(source, parsed, silent, None) as one:
            cloud, conditions = reading.cloud(one.conn, case.options, silent)
            planner = report.Planner(cloud, conditions)
            roots = list(cloud.anchors)
            for page in reading.pages_of_trees(one.conn, cloud, roots):
                for root, consumers in page.items():
                    found.append(planner.drain(consumers, frozenset({root}))[0])
    return render.document(found)
