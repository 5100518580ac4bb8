"""Concurrent changes of providers, trees, inventories, traits, aggregates and classes."""

from collections import Counter
import random
import uuid

from placement import db_api, errors
from placement.tests.functional.races import testcase, writers
from placement.tests.functional.races.testcase import claim, inventories_of

ROUNDS = 6


class ProviderWritesTest(testcase.RaceTestCase):
    # Inventories and classes

    def test_all_requests_at_once(self):
        """The schedules examine pairs of these requests; here, many of them wait for each other."""
        requests = [*writers.every(writers.RECORDED), *writers.ahead()]
        rng = random.Random(7)
        for _ in range(ROUNDS):
            writers.RECORDED.write(db_api.get_placement_engine())
            calls = [
                self.call(one.method, one.path, one.body, one.version)
                for one in rng.sample(requests, len(requests))
            ]
            # Some of the requests reduce inventories.
            statuses = [response.status for response in self.race(calls, may_exceed=True)]
            self.assertLess(10, sum(status < 300 for status in statuses))

    def test_a_provider_generation_is_accepted_once(self):
        own = f'/resource_providers/{self.make_provider({"VCPU": 4})}'
        calls = [
            self.call('PUT', f'{own}/inventories', inventories_of({name: n}, 1))
            for n in range(1, 7)
            for name in ('VCPU', 'MEMORY_MB')
        ]
        responses = self.race(calls)
        self.assertEqual({200: 1, 409: 11}, Counter(one.status for one in responses))
        self.assertEqual({None, errors.CONCURRENT_UPDATE}, {one.code for one in responses})
        (shown,) = self.send_ok('GET', f'{own}/inventories')['inventories'].values()
        winner = [one.status for one in responses].index(200)
        self.assertEqual(winner // 2 + 1, shown['total'])

    def test_inventory_is_deleted_while_it_is_claimed(self):
        for n in range(ROUNDS):
            provider = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10})
            path = f'/resource_providers/{provider}/inventories' + '/VCPU' * (n % 2)
            self.race_with_deletion(path, self.claims(provider, 6), 409, 204)

    # Providers and trees

    def test_one_provider_gets_a_name(self):
        paths = [f'/resource_providers/{self.make_provider()}' for _ in range(8)]
        for calls in (
            [self.call('POST', '/resource_providers', {'name': 'one'}) for _ in paths],
            [self.call('PUT', path, {'name': 'two'}) for path in paths],
        ):
            responses = self.race(calls)
            self.assertEqual({200: 1, 409: 7}, Counter(one.status for one in responses))
            self.assertEqual({None, errors.DUPLICATE_NAME}, {one.code for one in responses})

    def create_below(self, parent: str) -> testcase.Call:
        own = str(uuid.uuid4())
        body = {'name': own, 'uuid': own, 'parent_provider_uuid': parent}
        return self.call('POST', '/resource_providers', body)

    def move(self, own: str, parent: str | None) -> testcase.Call:
        body = {'name': f'provider-{own}', 'parent_provider_uuid': parent}
        return self.call('PUT', f'/resource_providers/{own}', body)

    def test_children_are_created_while_the_parent_is_deleted(self):
        for n in range(ROUNDS):
            parent = self.make_provider(parent=self.make_provider() if n % 2 else None)
            calls = [self.create_below(parent) for _ in range(4)]
            path = f'/resource_providers/{parent}'
            self.race_with_deletion(path, calls, 400, 200, errors.PROVIDER_CANNOT_DELETE_PARENT)

    def test_two_moves_that_would_create_a_loop(self):
        for n in range(ROUNDS):
            if n % 2:
                one, other = self.make_provider(), self.make_provider()
            else:
                root = self.make_provider()
                one, other = self.make_provider(parent=root), self.make_provider(parent=root)
            below_one, below_other = (
                self.make_provider(parent=one),
                self.make_provider(parent=other),
            )
            calls = [self.move(one, below_other), self.move(other, below_one)]
            self.assertEqual({200: 1, 400: 1}, self.statuses(calls))

    def test_moves_and_claims_in_one_tree(self):
        root = self.make_provider({'VCPU': 50})
        children = [self.make_provider({'VCPU': 50}, parent=root) for _ in range(3)]
        elsewhere = self.make_provider({'VCPU': 50})
        calls = []
        for n in range(10):
            shares = dict.fromkeys([root, *children, elsewhere], 1)
            calls.append(self.call('PUT', f'/allocations/{uuid.uuid4()}', claim(shares)))
            calls.append(self.move(children[n % 3], elsewhere if n % 2 else root))
        self.assertEqual([204, 200] * 10, [response.status for response in self.race(calls)])

    # Reshaping

    def reshape(self, root: str, child: str) -> testcase.Response:
        """Move the VCPU inventory and its allocations from a root to its child."""
        own = f'/resource_providers/{root}'
        current = self.send_ok('GET', f'{own}/allocations')
        claims = {}
        for consumer, share in current['allocations'].items():
            amount = share['resources'].get('VCPU')
            claims[consumer] = claim({child: amount}, share['consumer_generation'])
        generation = self.provider(child)['generation']
        inventories = {
            root: inventories_of({'MEMORY_MB': 10}, current['resource_provider_generation']),
            child: inventories_of({'VCPU': 100}, generation),
        }
        return self.send('POST', '/reshaper', {'inventories': inventories, 'allocations': claims})

    def test_reshapes_and_claims(self):
        """A reshape moves all allocations, or none."""
        for _ in range(3):
            root = self.make_provider({'VCPU': 100, 'MEMORY_MB': 10})
            child = self.make_provider(parent=root)
            calls = self.claims(root, 16)
            calls[4:4] = [lambda r=root, c=child: self.reshape(r, c)]
            calls[10:10] = [lambda r=root, c=child: self.reshape(r, c)]
            statuses = [response.status for response in self.race(calls)]
            self.assertLessEqual(set(statuses), {204, 409})
            moved = {statuses.pop(10), statuses.pop(4)}
            granted = statuses.count(204)
            expected = (0, granted) if 204 in moved else (16, 0)
            self.assertEqual(expected, (self.used(root), self.used(child)))


class ProviderWritesOnSqliteFileTest(testcase.SqliteFileTestCase, ProviderWritesTest):
    """The same tests on a database file."""
