"""Many clients change providers, trees, inventories, traits, aggregates and classes at once."""

from collections import Counter
import uuid

from placement import errors
from placement.tests.functional.races import arena
from placement.tests.functional.races.arena import claim, stock

ROUNDS = 6


class StructureTest(arena.Arena):
    def statuses(self, answers: list[arena.Answer]) -> Counter[int]:
        return Counter(answer.status for answer in answers)

    # Inventories and classes

    def test_first_inventories_beside_the_deletion_of_the_class(self):
        for n in range(ROUNDS):
            name = f'CUSTOM_GOES_{n}'
            self.sure('POST', '/resource_classes', {'name': name})
            providers = [self.make_provider({'VCPU': 4}) for _ in range(4)]
            calls = [
                self.call('PUT', f'/resource_providers/{rp}/inventories', stock({name: 1}, 1))
                for rp in providers
            ]
            calls.insert(n % 4, self.call('DELETE', f'/resource_classes/{name}'))
            answers = self.race(calls)
            deleted = answers.pop(n % 4)
            if deleted.status == 204:
                self.assertLessEqual(self.statuses(answers).keys(), {400})
            else:
                self.assertEqual(409, deleted.status)
                self.assertIn(200, self.statuses(answers))

    def test_one_generation_of_a_provider_is_good_once(self):
        provider = self.make_provider({'VCPU': 4})
        own = f'/resource_providers/{provider}'
        calls = [
            self.call('PUT', f'{own}/inventories', stock({'VCPU': n}, 1)) for n in range(1, 13)
        ]
        answers = self.race(calls)
        self.assertEqual({200: 1, 409: 11}, self.statuses(answers))
        self.assertEqual({None, errors.CONCURRENT_UPDATE}, {answer.code for answer in answers})
        total = self.sure('GET', f'{own}/inventories')['inventories']['VCPU']['total']
        self.assertEqual([answer.status for answer in answers].index(200) + 1, total)

    def test_inventory_goes_while_it_is_claimed(self):
        for n in range(ROUNDS):
            provider = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10})
            calls = [
                self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
                for _ in range(6)
            ]
            path = f'/resource_providers/{provider}/inventories' + '/VCPU' * (n % 2)
            calls.insert(3, self.call('DELETE', path))
            answers = self.race(calls)
            deleted = answers.pop(3)
            if deleted.status == 204:
                self.assertEqual({409: 6}, self.statuses(answers))
            else:
                self.assertEqual(409, deleted.status)
                self.assertEqual({204: 6}, self.statuses(answers))

    def test_one_class_of_many_clients(self):
        body = {'name': 'CUSTOM_ONE'}
        answers = self.race([self.call('POST', '/resource_classes', body) for _ in range(16)])
        self.assertEqual({201: 1, 409: 15}, self.statuses(answers))
        answers = self.race([self.call('PUT', '/resource_classes/CUSTOM_TWO') for _ in range(16)])
        self.assertEqual({201: 1, 204: 15}, self.statuses(answers))

    def test_many_classes_of_many_clients(self):
        calls = [self.call('PUT', f'/resource_classes/CUSTOM_{n}') for n in range(20)]
        calls += [self.call('DELETE', f'/resource_classes/CUSTOM_{n}') for n in range(0, 20, 5)]
        answers = self.race(calls)
        self.assertEqual({201: 20}, self.statuses(answers[:20]))
        self.assertLessEqual(self.statuses(answers[20:]).keys(), {204, 404})

    # Traits

    def test_one_trait_of_many_clients(self):
        answers = self.race([self.call('PUT', '/traits/CUSTOM_ONE') for _ in range(16)])
        self.assertEqual({201: 1, 204: 15}, self.statuses(answers))

    def test_traits_go_while_they_are_given(self):
        for n in range(ROUNDS):
            name = f'CUSTOM_GOES_{n}'
            self.sure('PUT', f'/traits/{name}')
            body = {'resource_provider_generation': 0, 'traits': [name]}
            calls = [
                self.call('PUT', f'/resource_providers/{self.make_provider()}/traits', body)
                for _ in range(4)
            ]
            calls.insert(n % 4, self.call('DELETE', f'/traits/{name}'))
            answers = self.race(calls)
            deleted = answers.pop(n % 4)
            if deleted.status == 204:
                self.assertEqual({400: 4}, self.statuses(answers))
            else:
                self.assertEqual(409, deleted.status)
                self.assertEqual({200: 4}, self.statuses(answers))

    # Aggregates

    def test_aggregates_are_never_a_union(self):
        for version in ('1.18', '1.19'):
            own = f'/resource_providers/{self.make_provider()}/aggregates'
            sets = [sorted(str(uuid.uuid4()) for _ in range(3)) for _ in range(10)]
            bodies = sets
            if version == '1.19':
                bodies = [{'resource_provider_generation': 0, 'aggregates': one} for one in sets]
            answers = self.race([self.call('PUT', own, body, version) for body in bodies])
            wanted = {200: 10} if version == '1.18' else {200: 1, 409: 9}
            self.assertEqual(wanted, self.statuses(answers))
            self.assertIn(sorted(self.sure('GET', own)['aggregates']), sets)

    def test_one_aggregate_of_many_providers(self):
        aggregates = [str(uuid.uuid4()) for _ in range(3)]
        calls = [
            self.call(
                'PUT',
                f'/resource_providers/{self.make_provider()}/aggregates',
                {'resource_provider_generation': 0, 'aggregates': aggregates},
            )
            for _ in range(12)
        ]
        self.assertEqual({200: 12}, self.statuses(self.race(calls)))

    # Providers and trees

    def test_one_name_of_many_providers(self):
        calls = [self.call('POST', '/resource_providers', {'name': 'one'}) for _ in range(12)]
        self.assertEqual({200: 1, 409: 11}, self.statuses(self.race(calls)))
        providers = [self.make_provider() for _ in range(8)]
        calls = [
            self.call('PUT', f'/resource_providers/{own}', {'name': 'two'}) for own in providers
        ]
        answers = self.race(calls)
        self.assertEqual({200: 1, 409: 7}, self.statuses(answers))
        self.assertEqual({None, errors.DUPLICATE_NAME}, {answer.code for answer in answers})

    def create_below(self, parent: str) -> arena.Call:
        own = str(uuid.uuid4())
        body = {'name': own, 'uuid': own, 'parent_provider_uuid': parent}
        return self.call('POST', '/resource_providers', body)

    def move(self, own: str, parent: str | None) -> arena.Call:
        body = {'name': f'provider-{own}', 'parent_provider_uuid': parent}
        return self.call('PUT', f'/resource_providers/{own}', body)

    def test_children_come_while_the_parent_goes(self):
        for n in range(ROUNDS):
            parent = self.make_provider(parent=self.make_provider() if n % 2 else None)
            calls = [self.create_below(parent) for _ in range(4)]
            calls.insert(2, self.call('DELETE', f'/resource_providers/{parent}'))
            answers = self.race(calls)
            deleted = answers.pop(2)
            if deleted.status == 204:
                self.assertEqual({400: 4}, self.statuses(answers))
            else:
                wanted = (409, errors.PROVIDER_CANNOT_DELETE_PARENT)
                self.assertEqual(wanted, (deleted.status, deleted.code))
                self.assertEqual({200: 4}, self.statuses(answers))

    def test_children_come_while_the_parent_moves(self):
        for _ in range(ROUNDS):
            parent = self.make_provider(parent=self.make_provider())
            elsewhere = self.make_provider()
            calls = [self.create_below(parent) for _ in range(6)]
            calls[1:1] = [self.move(parent, elsewhere)]
            calls[4:4] = [self.move(parent, None)]
            self.assertEqual({200: 8}, self.statuses(self.race(calls)))

    def test_two_moves_that_would_make_a_loop(self):
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
            self.assertEqual({200: 1, 400: 1}, self.statuses(self.race(calls)))

    def test_moves_of_all_kinds(self):
        roots = [self.make_provider() for _ in range(3)]
        children = [self.make_provider(parent=roots[n % 3]) for n in range(6)]
        calls = []
        for n in range(30):
            mover = children[n % 6] if n % 5 else roots[n % 3]
            target = None if n % 7 == 0 else [*roots, *children][(n * 4 + 1) % 9]
            calls.append(self.move(mover, target))
        answers = self.race(calls)
        self.assertLessEqual(self.statuses(answers).keys(), {200, 400})

    def test_moves_beside_claims_from_the_tree(self):
        root = self.make_provider({'VCPU': 50})
        children = [self.make_provider({'VCPU': 50}, parent=root) for _ in range(3)]
        elsewhere = self.make_provider({'VCPU': 50})
        calls = []
        for n in range(10):
            shares = dict.fromkeys([root, *children, elsewhere], 1)
            calls.append(self.call('PUT', f'/allocations/{uuid.uuid4()}', claim(shares)))
            calls.append(self.move(children[n % 3], elsewhere if n % 2 else root))
        answers = self.race(calls)
        self.assertEqual({204: 10}, self.statuses(answers[::2]))
        self.assertEqual({200: 10}, self.statuses(answers[1::2]))

    # Reshaping

    def reshape(self, root: str, child: str) -> arena.Answer:
        """Move all VCPU, and what is held of it, from a root to its child."""
        own = f'/resource_providers/{root}'
        held = self.sure('GET', f'{own}/allocations')
        claims = {}
        for consumer, share in held['allocations'].items():
            amount = share['resources'].get('VCPU')
            claims[consumer] = claim({child: amount}, share['consumer_generation'])
        generation = self.provider(child)['generation']
        inventories = {
            root: stock({'MEMORY_MB': 10}, held['resource_provider_generation']),
            child: stock({'VCPU': 100}, generation),
        }
        return self.ask('POST', '/reshaper', {'inventories': inventories, 'allocations': claims})

    def test_reshaping_beside_claims(self):
        """Either all of it was moved, or nothing."""
        for _ in range(3):
            root = self.make_provider({'VCPU': 100, 'MEMORY_MB': 10})
            child = self.make_provider(parent=root)
            calls = [
                self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({root: 1}))
                for _ in range(16)
            ]
            calls[4:4] = [lambda r=root, c=child: self.reshape(r, c)]
            calls[10:10] = [lambda r=root, c=child: self.reshape(r, c)]
            answers = self.race(calls)
            moved = [answers.pop(10), answers.pop(4)]
            granted = self.statuses(answers)[204]
            self.assertLessEqual({answer.status for answer in moved}, {204, 409})
            if 204 in {answer.status for answer in moved}:
                self.assertEqual((0, granted), (self.used(root), self.used(child)))
            else:
                self.assertEqual((granted, 0), (self.used(root), self.used(child)))
                self.assertEqual(16, granted)
            self.assertLessEqual(self.statuses(answers).keys(), {204, 409})


class StructureOnSqliteFileTest(arena.OnSqliteFile, StructureTest):
    """The same on a database file."""
