"""Concurrent changes of providers, trees, inventories, traits, aggregates and classes."""

from collections import Counter
import uuid

from placement import errors
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim, inventories_of

ROUNDS = 6


class ProviderWritesTest(testcase.RaceTestCase):
    # Inventories and classes

    def test_first_inventories_and_deletion_of_their_class(self):
        for n in range(ROUNDS):
            name = f'CUSTOM_DELETED_{n}'
            self.send_ok('POST', '/resource_classes', {'name': name})
            providers = [self.make_provider({'VCPU': 4}) for _ in range(4)]
            body = inventories_of({name: 1}, 1)
            calls = [
                self.call('PUT', f'/resource_providers/{one}/inventories', body)
                for one in providers
            ]
            self.race_with_deletion(f'/resource_classes/{name}', calls, 400, 200)

    def test_a_provider_generation_is_accepted_once(self):
        provider = self.make_provider({'VCPU': 4})
        own = f'/resource_providers/{provider}'
        calls = [
            self.call('PUT', f'{own}/inventories', inventories_of({'VCPU': n}, 1))
            for n in range(1, 13)
        ]
        responses = self.race(calls)
        self.assertEqual({200: 1, 409: 11}, Counter(response.status for response in responses))
        self.assertEqual(
            {None, errors.CONCURRENT_UPDATE}, {response.code for response in responses}
        )
        total = self.send_ok('GET', f'{own}/inventories')['inventories']['VCPU']['total']
        self.assertEqual([response.status for response in responses].index(200) + 1, total)

    def test_first_inventories_are_accepted_once(self):
        for _ in range(ROUNDS):
            own = f'/resource_providers/{self.make_provider()}'
            calls = [
                self.call('PUT', f'{own}/inventories', inventories_of({name: n}, 0))
                for n in range(1, 5)
                for name in ('VCPU', 'MEMORY_MB')
            ]
            calls.append(self.call('DELETE', f'{own}/inventories'))
            statuses = [response.status for response in self.race(calls)]
            self.assertEqual(204, statuses.pop())
            self.assertLessEqual(set(statuses), {200, 409})
            self.assertLessEqual(statuses.count(200), 1)
            self.assertLessEqual(len(self.send_ok('GET', f'{own}/inventories')['inventories']), 1)

    def test_inventory_is_deleted_while_it_is_claimed(self):
        for n in range(ROUNDS):
            provider = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10})
            path = f'/resource_providers/{provider}/inventories' + '/VCPU' * (n % 2)
            self.race_with_deletion(path, self.claims(provider, 6), 409, 204)

    def test_one_client_creates_a_class_or_trait(self):
        for method, path, body, others in (
            ('POST', '/resource_classes', {'name': 'CUSTOM_ONE'}, 409),
            ('PUT', '/resource_classes/CUSTOM_TWO', None, 204),
            ('PUT', '/traits/CUSTOM_ONE', None, 204),
        ):
            statuses = self.statuses([self.call(method, path, body)] * 16)
            self.assertEqual({201: 1, others: 15}, statuses)

    def test_classes_are_created_and_deleted(self):
        calls = [self.call('PUT', f'/resource_classes/CUSTOM_{n}') for n in range(20)]
        calls += [self.call('DELETE', f'/resource_classes/CUSTOM_{n}') for n in range(0, 20, 5)]
        responses = [response.status for response in self.race(calls)]
        self.assertEqual({201}, set(responses[:20]))
        self.assertLessEqual(set(responses[20:]), {204, 404})

    # Traits

    def test_traits_are_deleted_while_they_are_set(self):
        for n in range(ROUNDS):
            name = f'CUSTOM_DELETED_{n}'
            self.send_ok('PUT', f'/traits/{name}')
            body = {'resource_provider_generation': 0, 'traits': [name]}
            calls = [
                self.call('PUT', f'/resource_providers/{self.make_provider()}/traits', body)
                for _ in range(4)
            ]
            self.race_with_deletion(f'/traits/{name}', calls, 400, 200)

    # Aggregates

    def test_aggregates_are_never_a_union(self):
        for version in ('1.18', '1.19'):
            own = f'/resource_providers/{self.make_provider()}/aggregates'
            sets = [sorted(str(uuid.uuid4()) for _ in range(3)) for _ in range(10)]
            bodies = sets
            if version == '1.19':
                bodies = [{'resource_provider_generation': 0, 'aggregates': one} for one in sets]
            wanted = {200: 10} if version == '1.18' else {200: 1, 409: 9}
            calls = [self.call('PUT', own, body, version) for body in bodies]
            self.assertEqual(wanted, self.statuses(calls))
            self.assertIn(sorted(self.send_ok('GET', own)['aggregates']), sets)

    def test_new_aggregates_of_many_providers(self):
        aggregates = [str(uuid.uuid4()) for _ in range(3)]
        calls = [
            self.call(
                'PUT',
                f'/resource_providers/{self.make_provider()}/aggregates',
                {'resource_provider_generation': 0, 'aggregates': aggregates},
            )
            for _ in range(12)
        ]
        self.assertEqual({200: 12}, self.statuses(calls))

    # Providers and trees

    def test_one_provider_gets_a_name(self):
        calls = [self.call('POST', '/resource_providers', {'name': 'one'}) for _ in range(12)]
        self.assertEqual({200: 1, 409: 11}, self.statuses(calls))
        providers = [self.make_provider() for _ in range(8)]
        calls = [
            self.call('PUT', f'/resource_providers/{own}', {'name': 'two'}) for own in providers
        ]
        responses = self.race(calls)
        self.assertEqual({200: 1, 409: 7}, Counter(response.status for response in responses))
        self.assertEqual({None, errors.DUPLICATE_NAME}, {response.code for response in responses})

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

    def test_children_are_created_while_the_parent_moves(self):
        for _ in range(ROUNDS):
            parent = self.make_provider(parent=self.make_provider())
            elsewhere = self.make_provider()
            calls = [self.create_below(parent) for _ in range(6)]
            calls[1:1] = [self.move(parent, elsewhere)]
            calls[4:4] = [self.move(parent, None)]
            self.assertEqual({200: 8}, self.statuses(calls))

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

    def test_moves_of_all_kinds(self):
        roots = [self.make_provider() for _ in range(3)]
        children = [self.make_provider(parent=roots[n % 3]) for n in range(6)]
        calls = []
        for n in range(30):
            mover = children[n % 6] if n % 5 else roots[n % 3]
            target = None if n % 7 == 0 else [*roots, *children][(n * 4 + 1) % 9]
            calls.append(self.move(mover, target))
        self.assertLessEqual(self.statuses(calls).keys(), {200, 400})

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
            responses = self.race(calls)
            moved = [responses.pop(10), responses.pop(4)]
            granted = Counter(response.status for response in responses)[204]
            self.assertLessEqual({response.status for response in moved}, {204, 409})
            if 204 in {response.status for response in moved}:
                self.assertEqual((0, granted), (self.used(root), self.used(child)))
            else:
                self.assertEqual((granted, 0), (self.used(root), self.used(child)))
                self.assertEqual(16, granted)
            self.assertLessEqual(
                Counter(response.status for response in responses).keys(), {204, 409}
            )


class ProviderWritesOnSqliteFileTest(testcase.SqliteFileTestCase, ProviderWritesTest):
    """The same tests on a database file."""
