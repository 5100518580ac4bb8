"""Many clients claim, move and release at once."""

from collections import Counter
import uuid

from placement import errors
from placement.tests.functional.races import arena
from placement.tests.functional.races.arena import claim, old_claim


class ClaimsTest(arena.Arena):
    def claims(self, provider: str, count: int, amount: int = 1) -> list[arena.Call]:
        return [
            self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: amount}))
            for _ in range(count)
        ]

    def test_too_little_room(self):
        provider = self.make_provider({'VCPU': 20})
        answers = self.race(self.claims(provider, 50))
        self.assertEqual({204: 20, 409: 30}, Counter(answer.status for answer in answers))
        for answer in answers:
            if answer.status == 409:
                self.assertIn('exceed its capacity', answer.detail)
        self.assertEqual(20, self.used(provider))

    def test_contention_is_waiting(self):
        """All claims that fit are granted, and none is told to come again."""
        provider = self.make_provider({'VCPU': 120})
        answers = self.race(self.claims(provider, 60, 2))
        self.assertEqual({204: 60}, Counter(answer.status for answer in answers))
        self.assertEqual(120, self.used(provider))

    def test_several_providers_in_any_order(self):
        """Whoever claims from several providers waits for others, and never in a circle."""
        providers = [self.make_provider({'VCPU': 30}) for _ in range(4)]
        calls = [
            self.call(
                'PUT',
                f'/allocations/{uuid.uuid4()}',
                claim({providers[(n + step) % 4]: 1 for step in range(3)}),
            )
            for n in range(40)
        ]
        answers = self.race(calls)
        self.assertEqual({204: 40}, Counter(answer.status for answer in answers))
        self.assertEqual([30] * 4, [self.used(provider) for provider in providers])

    def test_moves_beside_claims(self):
        """What is handed over is never held twice and never lost."""
        source, target = self.make_provider({'VCPU': 20}), self.make_provider({'VCPU': 20})
        held = [str(uuid.uuid4()) for _ in range(20)]
        for consumer in held:
            self.sure('PUT', f'/allocations/{consumer}', claim({source: 1}))
        moves = [
            self.call(
                'POST',
                '/allocations',
                {consumer: claim({}, 1), str(uuid.uuid4()): claim({target: 1})},
            )
            for consumer in held
        ]
        claims = self.claims(target, 10) + self.claims(source, 10)
        mixed = [call for pair in zip(moves, claims, strict=True) for call in pair]
        answers = self.race(mixed)
        moved = Counter(answer.status for answer in answers[::2])
        at_target = Counter(answer.status for answer in answers[1:20:2])
        at_source = Counter(answer.status for answer in answers[21::2])
        self.assertEqual({204, 409}, {*moved, *at_target, 409})
        self.assertEqual(moved[204] + at_target[204], self.used(target))
        self.assertEqual(20, self.used(target))
        self.assertEqual(20 - moved[204] + at_source[204], self.used(source))

    def test_a_new_consumer_of_many_clients(self):
        """From 1.28 on it is one client's. A provider is not raised by the others."""
        provider = self.make_provider({'VCPU': 100})
        before = self.provider(provider)['generation']
        consumer = str(uuid.uuid4())
        answers = self.race(
            [
                self.call('PUT', f'/allocations/{consumer}', claim({provider: n}))
                for n in range(1, 25)
            ]
        )
        self.assertEqual({204: 1, 409: 23}, Counter(answer.status for answer in answers))
        self.assertEqual({None, errors.CONCURRENT_UPDATE}, {answer.code for answer in answers})
        winner = [answer.status for answer in answers].index(204) + 1
        self.assertEqual(winner, self.used(provider))
        self.assertEqual(before + 1, self.provider(provider)['generation'])

    def test_a_new_consumer_of_many_old_clients(self):
        """Before 1.28 the last one wins, and all are told that they did."""
        provider = self.make_provider({'VCPU': 100})
        consumer = str(uuid.uuid4())
        calls = [
            self.call('PUT', f'/allocations/{consumer}', old_claim({provider: n}), '1.27')
            for n in range(1, 25)
        ]
        answers = self.race(calls)
        self.assertEqual({204: 24}, Counter(answer.status for answer in answers))
        self.assertIn(self.used(provider), range(1, 25))

    def test_one_generation_is_good_once(self):
        providers = [self.make_provider({'VCPU': 100}) for _ in range(2)]
        consumer = str(uuid.uuid4())
        self.sure('PUT', f'/allocations/{consumer}', claim({providers[0]: 1}))
        calls = [
            self.call('PUT', f'/allocations/{consumer}', claim({providers[n % 2]: n + 2}, 1))
            for n in range(20)
        ]
        answers = self.race(calls)
        self.assertEqual({204: 1, 409: 19}, Counter(answer.status for answer in answers))
        winner = [answer.status for answer in answers].index(204)
        self.assertEqual(
            [winner + 2, 0],
            [self.used(providers[winner % 2]), self.used(providers[1 - winner % 2])],
        )

    def test_release_beside_claim_of_one_consumer(self):
        provider = self.make_provider({'VCPU': 100})
        consumer = str(uuid.uuid4())
        calls = []
        for n in range(20):
            calls.append(
                self.call('PUT', f'/allocations/{consumer}', old_claim({provider: n + 1}), '1.27')
            )
            calls.append(self.call('DELETE', f'/allocations/{consumer}'))
        answers = self.race(calls)
        self.assertEqual({204}, {answer.status for answer in answers[::2]})
        self.assertLessEqual({answer.status for answer in answers[1::2]}, {204, 404})

    def test_new_owners_of_many_clients(self):
        """Projects, users and types are made once, whoever comes first."""
        provider = self.make_provider({'VCPU': 100})
        calls = []
        for n in range(24):
            body = claim({provider: 1}, project=f'project-{n % 3}')
            body |= {'user_id': f'user-{n % 4}', 'consumer_type': f'TYPE_{n % 5}'}
            calls.append(self.call('PUT', f'/allocations/{uuid.uuid4()}', body))
        answers = self.race(calls)
        self.assertEqual({204: 24}, Counter(answer.status for answer in answers))

    def test_owners_that_differ_in_letter_case(self):
        """Some databases take them for one: nobody is kept waiting because of that."""
        provider = self.make_provider({'VCPU': 100})
        bodies = {}
        for name in ('Team', 'team', 'TEAM'):
            bodies[str(uuid.uuid4())] = claim({provider: 1}, project=name)
        answers = self.race([self.call('POST', '/allocations', bodies)])
        self.assertEqual(204, answers[0].status)

    def test_providers_go_while_they_are_claimed(self):
        for _ in range(4):
            provider = self.make_provider({'VCPU': 100})
            calls = self.claims(provider, 8)
            calls.insert(4, self.call('DELETE', f'/resource_providers/{provider}'))
            answers = self.race(calls)
            deleted = answers.pop(4)
            claimed = Counter(answer.status for answer in answers)
            if deleted.status == 204:
                self.assertEqual({400: 8}, claimed)
            else:
                self.assertEqual((409, errors.PROVIDER_IN_USE), (deleted.status, deleted.code))
                self.assertEqual({204: 8}, claimed)


class ClaimsOnSqliteFileTest(arena.OnSqliteFile, ClaimsTest):
    """The same on a database file."""
