"""Many clients claim, move and release concurrently."""

from collections import Counter
import uuid

from placement import errors
from placement.tests import servers, where
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim


@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class ClaimsTest(testcase.RaceTestCase):
    def test_claims_beyond_the_capacity_are_rejected(self):
        provider = self.make_provider({'VCPU': 20})
        responses = self.race(self.claims(provider, 50))
        self.assertEqual({204: 20, 409: 30}, Counter(response.status for response in responses))
        for response in responses:
            if response.status == 409:
                self.assertIn('exceed its capacity', response.detail)
        self.assertEqual(20, self.used(provider))

    def test_claims_of_several_providers_do_not_deadlock(self):
        """Claims that name the same providers in different orders wait for each other.

        All of them fit, so all are granted, and no response requires a retry.
        """
        providers = [self.make_provider({'VCPU': 30}) for _ in range(4)]
        calls = [
            self.call(
                'PUT',
                f'/allocations/{uuid.uuid4()}',
                claim({providers[(n + step) % 4]: 1 for step in range(3)}),
            )
            for n in range(40)
        ]
        self.assertEqual({204: 40}, self.statuses(calls))
        self.assertEqual([30] * 4, [self.used(provider) for provider in providers])

    def test_one_client_creates_a_consumer(self):
        """Since 1.28 one claim creates the consumer, and increments the provider generation."""
        provider = self.make_provider({'VCPU': 100})
        before = self.provider(provider)['generation']
        consumer = str(uuid.uuid4())
        path = f'/allocations/{consumer}'
        responses = self.race([self.call('PUT', path, claim({provider: n})) for n in range(1, 25)])
        self.assertEqual({204: 1, 409: 23}, Counter(response.status for response in responses))
        self.assertEqual(
            {None, errors.CONCURRENT_UPDATE}, {response.code for response in responses}
        )
        winner = [response.status for response in responses].index(204) + 1
        self.assertEqual(winner, self.used(provider))
        self.assertEqual(before + 1, self.provider(provider)['generation'])

    def test_owners_are_created_once(self):
        """Concurrent claims create each project, user and consumer type once."""
        providers = [self.make_provider({'VCPU': 100}) for _ in range(2)]
        with self.retries() as retries:
            for name in ('first', 'second', 'third'):
                calls = []
                for n in range(24):
                    body = claim({providers[n % 2]: 1}, project=f'{name}-{n % 3}')
                    body |= {
                        'user_id': f'{name}-{n % 4}',
                        'consumer_type': f'{name.upper()}_{n % 5}',
                    }
                    calls.append(self.call('PUT', f'/allocations/{uuid.uuid4()}', body))
                self.assertEqual({204: 24}, self.statuses(calls))
        reasons = 'Duplicate|duplicate'
        if servers.engine() in ('mariadb', 'mysql'):
            # The INSERT of a consumer locks the rows of its owners, too. Two claims that wait for a
            # name deadlock if the claim that has inserted it is retried.
            reasons += '|Deadlock'
        for line in retries:
            self.assertRegex(line, reasons)

    def test_providers_are_deleted_while_they_are_claimed(self):
        for _ in range(4):
            provider = self.make_provider({'VCPU': 100})
            path, claims = f'/resource_providers/{provider}', self.claims(provider, 8)
            self.race_with_deletion(path, claims, 400, 204, errors.PROVIDER_IN_USE)


class ClaimsOnSqliteFileTest(testcase.SqliteFileTestCase, ClaimsTest):
    """The same tests on a database file."""
