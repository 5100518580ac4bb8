"""The API agrees with explanations of random queries.

A query without some conditions has candidates if and only if these conditions are a relaxation, or
contain one. Conditions on amounts are not left out, because the API has no such query.

The environment variable PLACEMENT_TEST_EXPLAIN_API sets the seeds, for example 0-2000.
"""

from collections.abc import Iterable
import itertools
import os
import random
from urllib import parse

from placement import db_api, microversion
from placement.admin import progress
from placement.admin.explain import explanation, model
from placement.candidates import paging
from placement.microversion import Version
from placement.tests import servers
from placement.tests.functional import base
from placement.tests.functional.admin.explain import cases, naive
from placement.tests.worlds import rows

# The number of queries on each world, and the maximum number of requests for each query.
QUERIES, REQUESTS = 4, 10
# On a server, the same statements only have to be valid there.
SEEDS = os.environ.get(
    'PLACEMENT_TEST_EXPLAIN_API', '0-5' if servers.ADMIN_URL in os.environ else '0-15'
)


class ApiTest(base.TestCase):
    def test_random_queries(self) -> None:
        first, last = map(int, SEEDS.split('-'))
        # The first page has one tree. If it has no candidate, the database selects the other trees.
        self.patch(paging, 'FIRST_PAGE', 1)
        compared = 0
        with db_api.get_placement_engine().connect() as conn:
            for seed in range(first, last):
                rng = random.Random(seed)
                world = cases.world(rng)
                rows.fill(conn, world, names=True)
                conn.commit()
                for _ in range(QUERIES):
                    pairs, version = cases.query(rng, world)
                    subject = explanation.Subject(parse.urlencode(pairs), version, -1, 0)
                    found = explanation.explain(conn, subject, progress.silent)
                    conn.rollback()
                    try:
                        compared += self.compare(pairs, version, found, rng)
                    except Exception:
                        print(f'Seed {seed}, microversion {version}: {pairs}')
                        raise
        self.assertGreater(compared, 2 * (last - first))

    def compare(
        self, pairs: cases.Pairs, version: Version, found: model.Explanation, rng: random.Random
    ) -> int:
        """Compare an explanation with the API, and return the number of compared relaxations."""
        has_candidates = self.has_candidates(pairs, version)
        self.assertEqual(found.candidates.count > 0, has_candidates)
        if found.nested:
            self.assertEqual(found.nested.count > 0, self.has_candidates(pairs, Version(1, 29)))
        if has_candidates:
            return 0
        every = naive.conditions(pairs, version)
        relaxations = {frozenset(relaxation.without) for relaxation in found.relaxations}
        # If there is a relaxation of one condition, pairs of conditions are not examined.
        sizes = (1,) if any(len(keys) == 1 for keys in relaxations) else (1, 2)
        sets = [set_ for size in sizes for set_ in itertools.combinations(every, size)]
        compared = 0
        for left_out in rng.sample(sets, min(len(sets), REQUESTS)):
            query = without(every, left_out, version)
            result = self.has_candidates(query, version) if query else None
            if result is not None:
                keys = frozenset(condition.key for condition in left_out)
                self.assertEqual(keys in relaxations, result, keys)
                compared += 1
        return compared

    def has_candidates(self, pairs: cases.Pairs, version: Version) -> bool | None:
        """Return None if the API refuses the query."""
        path = f'/allocation_candidates?{parse.urlencode(pairs)}'
        response = self.send('GET', path, version=str(version))
        if response.status_code == 400:
            return None
        self.assertEqual(200, response.status_code, response.text)
        return bool(response.json()['allocation_requests'])


def without(
    every: Iterable[naive.Condition], left_out: Iterable[naive.Condition], version: Version
) -> cases.Pairs | None:
    """Return the parameters of a query without some of its conditions.

    :returns: None if the query string cannot express it
    """
    every, left_out = list(every), list(left_out)
    kept = [condition for condition in every if condition not in left_out]
    if any(condition.kind == 'resources' for condition in left_out) or {
        condition.suffix for condition in kept
    } < {condition.suffix for condition in every if condition.suffix is not None}:
        return None
    lists: dict[str, list[str]] = {}
    pairs: cases.Pairs = []
    for condition in kept:
        key, _, value = condition.key.partition(':')
        if condition.kind == 'resources':
            lists.setdefault(key, []).append(f'{value}:{condition.amount}')
        elif key == 'root_required' or (
            key.startswith('required') and version < microversion.ANY_TRAITS
        ):
            lists.setdefault(key, []).append(value)
        else:
            pairs.append((key, value or _value(condition)))
    pairs += [(key, ','.join(values)) for key, values in lists.items()]
    if version >= (1, 25) and ('group_policy', 'isolate') not in pairs:
        pairs.append(('group_policy', 'none'))
    return pairs


def _value(condition: naive.Condition) -> str:
    """Return the value of a condition whose key does not contain it."""
    return 'isolate' if condition.kind == 'group_policy' else condition.values[0]
