"""`placement-manage rename-uuid` runs while clients write the same rows."""

from collections import Counter
from concurrent import futures
import functools
from unittest import mock
import uuid

from placement.admin import rename_uuid
from placement.objects import resource_provider
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import Response, claim
from placement.tests.waiting import LONGEST

# The time in which a claim would end that does not wait for the rename.
SECONDS = 0.5


def rename(old: str, new: str) -> Response:
    rename_uuid.rename(old, new)
    return Response(200, None, {})


class RenameTest(testcase.RaceTestCase):
    def race_with(self, old, new, calls):
        """Rename after a third of the calls have started; return the number of each status."""
        third = len(calls) // 3
        both = [*calls[:third], functools.partial(rename, old, new), *calls[third:]]
        return Counter(response.status for response in self.race(both))

    def claims_of(self, *providers):
        calls = (self.claims(provider, 20) for provider in providers)
        return [call for some in zip(*calls, strict=True) for call in some]

    def assertGone(self, provider):
        self.assertEqual(404, self.send('GET', f'/resource_providers/{provider}').status)

    def test_claims_of_both_providers(self):
        """Each granted claim is an allocation of NEW afterwards, and none exceeds a capacity."""
        old, new = self.make_provider({'VCPU': 30}), self.make_provider({'VCPU': 80})
        child = self.make_provider({'VCPU': 20}, old)
        moving, released = ([str(uuid.uuid4()) for _ in range(5)] for _ in range(2))
        for consumer in (*moving, *released):
            self.send_ok('PUT', f'/allocations/{consumer}', claim({old: 1}))
        calls = self.claims_of(old, new, child)
        for number, (mover, leaver) in enumerate(zip(moving, released, strict=True)):
            move = self.call('PUT', f'/allocations/{mover}', claim({new: 2}, 1))
            release = self.call('DELETE', f'/allocations/{leaver}')
            calls[number * 12 : number * 12] = [move, release]
        statuses = self.race_with(old, new, calls)
        # 400: OLD does not exist. 409: the rename has changed the consumer that moves.
        self.assertEqual({200, 204, 400, 409} | set(statuses), {200, 204, 400, 409})
        moved = sum(
            self.send_ok('GET', f'/allocations/{consumer}')['allocations'][new]['resources']['VCPU']
            for consumer in moving
        )
        moves = moved - len(moving)
        claimed = statuses[204] - len(released) - moves
        self.assertEqual(claimed + moved, self.used(new) + self.used(child))
        self.assertEqual(20, self.used(child))
        self.assertEqual(new, self.provider(child)['root_provider_uuid'])
        self.assertGone(old)

    def test_a_claim_waits_for_the_deletion_of_the_old_provider(self):
        """A claim of OLD that begins before its deletion is rejected, and leaves nothing behind."""
        old, new = self.make_provider({'VCPU': 2}), self.make_provider({'VCPU': 2})
        racing = []

        def delete_rows(conn, provider_id):
            (call,) = self.claims(old, 1)
            racing.append(testcase.start(call))
            # The claim ends here only if the provider is not locked.
            futures.wait(racing, SECONDS)
            resource_provider.delete_rows(conn, provider_id)

        with mock.patch.object(rename_uuid, 'resource_provider', delete_rows=delete_rows):
            rename_uuid.rename(old, new)
        self.assertEqual([400], [future.result(LONGEST).status for future in racing])
        self.audit()
        self.assertGone(old)

    def test_claims_of_a_provider_that_gets_an_unused_uuid(self):
        old, new = self.make_provider({'VCPU': 100}), str(uuid.uuid4())
        statuses = self.race_with(old, new, self.claims_of(old, new))
        self.assertEqual(40, statuses[204] + statuses[400])
        self.assertEqual(statuses[204], self.used(new))
        self.assertGone(old)

    def test_the_other_provider_is_created_at_the_same_time(self):
        for number in range(8):
            old, new = self.make_provider({'VCPU': 1}), str(uuid.uuid4())
            body = {'name': f'again-{number}', 'uuid': new}
            create = self.call('POST', '/resource_providers', body)
            statuses = self.race_with(old, new, [create, self.call('GET', '/resource_providers')])
            self.assertEqual(3, statuses[200] + statuses[409], statuses)
            self.assertIsNone(self.provider(new)['parent_provider_uuid'])
            self.assertGone(old)

    def test_children_of_the_old_provider_are_created(self):
        old, new = self.make_provider(), self.make_provider()
        calls = [
            self.call(
                'POST',
                '/resource_providers',
                {'name': f'child-{number}', 'uuid': str(uuid.uuid4()), 'parent_provider_uuid': old},
            )
            for number in range(12)
        ]
        statuses = self.race_with(old, new, calls)
        tree = self.send_ok('GET', f'/resource_providers?in_tree={new}')['resource_providers']
        self.assertEqual(statuses[200], len(tree))
        self.assertGone(old)
