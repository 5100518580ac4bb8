"""The trail: the examples of the page about logging are the lines of these requests."""

import logging
from typing import Any
from unittest import mock

import fixtures
import sqlalchemy as sa

from placement.objects import generation
from placement.tests.functional import base
from placement.tests.functional.log import examples

HOST = '9b0d3f8e-6c1a-4d52-8f47-2e5b7a90c1d6'
OTHER_HOST = '51aa07c4-2f9b-4e36-b8d0-64c7e1f3a958'
AGGREGATE = '7d2c51e0-48af-4b6d-9c3e-15f80a72d4b6'
OTHER_AGGREGATE = 'e1f0b36a-72d9-4c85-a04e-8b6d3c91f527'
SERVER = '6f0a2c71-93de-4b58-a1e4-7d8c05f3b296'
OTHER_SERVER = 'c81d4f60-5b27-49ea-9d13-f02a86e7b5c4'


class TestCase(base.TestCase):
    """`logged` returns the lines that requests log."""

    LOGGER = 'placement.claims'

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(self.LOGGER, logging.INFO))
        self.seen = 0

    def logged(self) -> list[str]:
        """Return the lines since the last call."""
        lines = self.log.output.splitlines()
        new = lines[self.seen :]
        self.seen = len(lines)
        return new

    def make_host(self, uuid: str, name: str, **inventories: dict[str, int]) -> None:
        self.send_ok('POST', '/resource_providers', {'name': name, 'uuid': uuid})
        body = {'resource_provider_generation': 0, 'inventories': inventories}
        self.send_ok('PUT', f'/resource_providers/{uuid}/inventories', body)


def claim(generation: int | None = None, uuid: str = HOST, **resources: int) -> dict[str, Any]:
    """Return the body of a request for an allocation from one provider."""
    shares = {uuid: resources} if resources else {}
    return base.claim(shares, generation, project='p', user='u')


class RefusedClaimsTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        vcpu = {'total': 64, 'min_unit': 2, 'max_unit': 16, 'step_size': 2}
        self.make_host(HOST, 'compute-1', VCPU=vcpu, MEMORY_MB={'total': 1000})
        self.make_host(OTHER_HOST, 'compute-2', MEMORY_MB={'total': 1000})

    def refuse(self, method: str, path: str, body: Any) -> list[str]:
        """Send a request that is refused, and return what it logs."""
        self.logged()
        response = self.send(method, path, body)
        self.assertIn(response.status_code, (400, 409), response.text)
        return self.logged()

    def put(self, body: Any) -> list[str]:
        return self.refuse('PUT', f'/allocations/{SERVER}', body)

    def test_the_examples_of_the_page(self) -> None:
        for number in range(4):
            uuid = f'{SERVER[:-1]}{number}'
            self.send_ok('PUT', f'/allocations/{uuid}', claim(VCPU=14 if number else 16))
        for current in (None, 1, 2):
            self.send_ok('PUT', f'/allocations/{SERVER}', claim(current, VCPU=4))
        lines = [
            *self.put(claim(3, VCPU=10)),
            *self.put(claim(3, VCPU=3)),
            *self.put(claim(3, VGPU=1)),
            *self.put(claim(2, VCPU=2)),
        ]
        with (
            mock.patch('placement.db.retry.DEADLINE', 0),
            mock.patch.object(generation, '_increment_one', return_value=0) as increment,
        ):
            lines += self.put(claim(3, VCPU=2))
        # A refused request has one line, and not one for each attempt.
        self.assertGreater(increment.call_count, 1)
        self.assertEqual(examples.example('refusal-lines').splitlines(), lines)

    def test_claims_of_several_consumers(self) -> None:
        for first, second, line in (
            (claim(VCPU=2), claim(VCPU=18), f'{OTHER_SERVER} refused: VCPU on {HOST}: '),
            (
                *(claim(MEMORY_MB=600), claim(MEMORY_MB=500)),
                f'{OTHER_SERVER} refused: MEMORY_MB on {HOST}: 1100 requested, 0 of 1000 used',
            ),
            (
                *(claim(VCPU=2, uuid=SERVER), claim(VCPU=2)),
                f'{SERVER}, {OTHER_SERVER} refused: provider {SERVER}: unknown',
            ),
        ):
            body = {SERVER: first, OTHER_SERVER: second}
            (logged,) = self.refuse('POST', '/allocations', body)
            self.assertTrue(logged.startswith(f'claim of {line}'), logged)

    def test_reshapes(self) -> None:
        self.send_ok('PUT', f'/allocations/{SERVER}', claim(MEMORY_MB=8))
        new = {'total': 4}
        for given, inventories, allocations, expected in (
            (7, {}, {}, f'- refused: provider {HOST}: generation 7 given, 2 stored'),
            (2, {'VCPU': new}, {}, f'- refused: MEMORY_MB on {HOST}: inventory in use'),
            (
                *(2, {'VCPU': new, 'MEMORY_MB': new}, {SERVER: claim(1, VCPU=5)}),
                f'{SERVER} refused: VCPU on {HOST}: 5 requested, 0 of 4 used',
            ),
            (
                *(2, {'VCPU': new}, {SERVER: claim(None, VCPU=4)}),
                f'{SERVER} refused: consumer generation null given, 1 stored',
            ),
        ):
            replacement = {'resource_provider_generation': given, 'inventories': inventories}
            body = {'inventories': {HOST: replacement}, 'allocations': allocations}
            self.assertEqual([f'claim of {expected}'], self.refuse('POST', '/reshaper', body))


class ChangesTest(TestCase):
    LOGGER = 'placement.changes'

    def test_the_examples_of_the_page(self) -> None:
        lines: list[str] = []
        for step in (
            *(self._change_provider, self._change_inventory, self._change_links),
            self._change_allocations,
        ):
            step(lines)
        self.send_ok('PUT', f'{self._path()}/inventories', self._inventories(9))
        self.logged()
        self.send_ok('DELETE', self._path())
        lines.insert(3, *self.logged())
        self.assertEqual(examples.example('change-lines').splitlines(), lines)

    def _path(self, uuid: str = HOST) -> str:
        return f'/resource_providers/{uuid}'

    def _inventories(self, given: int, **inventories: dict[str, Any]) -> dict[str, Any]:
        return {'resource_provider_generation': given, 'inventories': inventories}

    def _change_provider(self, lines: list[str]) -> None:
        self.send_ok('POST', '/resource_providers', {'name': 'compute-1', 'uuid': HOST})
        lines += self.logged()
        self.send_ok('PUT', self._path(), {'name': 'host-1'})
        self.make_host(OTHER_HOST, 'compute-2', VCPU={'total': 8}, VGPU={'total': 1})
        self.logged()
        self.send_ok('PUT', self._path(), {'name': 'compute-1'})
        lines += self.logged()
        self.send_ok('PUT', self._path(), {'name': 'compute-1', 'parent_provider_uuid': OTHER_HOST})
        lines += self.logged()

    def _change_inventory(self, lines: list[str]) -> None:
        vcpu, memory = {'total': 64, 'allocation_ratio': 4.0}, {'total': 262144}
        path = f'{self._path()}/inventories'
        self.send_ok('PUT', path, self._inventories(0, VCPU=vcpu, MEMORY_MB=memory))
        lines += self.logged()
        vcpu = {'total': 72, 'allocation_ratio': 8.0}
        self.send_ok('PUT', path, self._inventories(1, VCPU=vcpu, PCPU={'total': 8}))
        lines += self.logged()
        self.send_ok('PUT', path, self._inventories(2, VCPU=vcpu, MEMORY_MB=memory))
        self.logged()

    def _change_links(self, lines: list[str]) -> None:
        self.send_ok('PUT', '/traits/CUSTOM_GOLD')
        for given, name in ((3, 'CUSTOM_GOLD'), (4, 'COMPUTE_STATUS_DISABLED')):
            body = {'resource_provider_generation': given, 'traits': [name]}
            self.logged()
            self.send_ok('PUT', f'{self._path()}/traits', body)
        lines += self.logged()
        for given, uuid in ((5, OTHER_AGGREGATE), (6, AGGREGATE)):
            aggregates = {'resource_provider_generation': given, 'aggregates': [uuid]}
            self.logged()
            self.send_ok('PUT', f'{self._path()}/aggregates', aggregates)
        lines += self.logged()

    def _change_allocations(self, lines: list[str]) -> None:
        body = claim(VCPU=4, MEMORY_MB=8192)
        body['allocations'][OTHER_HOST] = {'resources': {'VGPU': 1}}
        path = f'/allocations/{SERVER}'
        self.send_ok('PUT', path, body)
        lines += self.logged()
        self.send_ok('PUT', path, claim(1, VCPU=4))
        self.logged()
        self.send_ok('PUT', path, claim(2, OTHER_HOST, VCPU=8))
        lines += self.logged()
        self.send_ok('PUT', path, claim(3))
        lines += self.logged()

    def check(self, *requests: tuple[str, str, Any, list[str]]) -> None:
        """Send requests, each with its lines."""
        self.logged()
        for method, path, body, lines in requests:
            version = '1.18' if isinstance(body, list) else 'latest'
            self.send_ok(method, path, body, version)
            self.assertEqual(lines, self.logged(), f'{method} {path}')

    def test_allocations(self) -> None:
        self.make_host(HOST, 'compute-1', VCPU={'total': 8}, VGPU={'total': 1})
        self.make_host(OTHER_HOST, 'compute-2')
        path, start = f'/allocations/{SERVER}', f'allocations of {SERVER}'
        owner = '(INSTANCE, project p, user u): '
        inventories = {
            HOST: self._inventories(5, VCPU={'total': 4}),
            OTHER_HOST: self._inventories(1, VGPU={'total': 1}),
        }
        moved = {SERVER: claim(None, OTHER_HOST, VGPU=1)}
        several = {SERVER: claim(), OTHER_SERVER: claim(VCPU=1)}
        self.check(
            ('PUT', path, claim(VCPU=4), [f'{start} {owner}{HOST} VCPU 4']),
            ('PUT', path, claim(1, VCPU=4), []),
            (
                *('PUT', path, {**claim(2, VCPU=4), 'user_id': 'v w'}),
                [f'{start} (INSTANCE, project p, user v%20w): {HOST} VCPU 4'],
            ),
            ('DELETE', path, None, [f'{start} removed']),
            (
                *('POST', '/allocations', several),
                [f'allocations of {OTHER_SERVER} {owner}{HOST} VCPU 1'],
            ),
            (
                *('POST', '/reshaper', {'inventories': inventories, 'allocations': moved}),
                [
                    f'inventory of {HOST}: VCPU total 8 -> 4; VGPU removed (total 1)',
                    f'inventory of {OTHER_HOST}: VGPU added (total 1)',
                    f'{start} {owner}{OTHER_HOST} VGPU 1',
                ],
            ),
        )
        self.assertEqual(404, self.send('DELETE', f'/allocations/{HOST}').status_code)
        self.assertEqual([], self.logged())

    def test_inventories_and_links(self) -> None:
        self.make_host(HOST, 'a b')
        path, label = self._path(), f'a%20b ({HOST}): '
        own = f'{path}/inventories'
        vcpu = {'resource_provider_generation': 1, 'total': 8, 'resource_class': 'VCPU'}
        total = {'resource_provider_generation': 2, 'total': 9}
        names = ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2']
        traits = {'resource_provider_generation': 6, 'traits': names}
        added = self._inventories(4, VGPU={'total': 1})
        self.check(
            ('POST', own, vcpu, [f'inventory of {label}VCPU added (total 8)']),
            ('PUT', f'{own}/VCPU', total, [f'inventory of {label}VCPU total 8 -> 9']),
            ('DELETE', f'{own}/VCPU', None, [f'inventory of {HOST}: VCPU removed (total 9)']),
            ('PUT', own, added, [f'inventory of {label}VGPU added (total 1)']),
            ('DELETE', own, None, [f'inventory of {label}VGPU removed (total 1)']),
            ('PUT', f'{path}/traits', traits, [f'traits of {label}+{names[0]} +{names[1]}']),
            ('PUT', f'{path}/aggregates', [AGGREGATE], [f'aggregates of {HOST}: +{AGGREGATE}']),
            ('PUT', f'{path}/aggregates', [AGGREGATE], []),
            ('DELETE', f'{path}/traits', None, [f'traits of {label}-{names[0]} -{names[1]}']),
            ('DELETE', f'{path}/traits', None, []),
            ('PUT', f'{path}/aggregates', [], [f'aggregates of {HOST}: -{AGGREGATE}']),
            ('PUT', f'{path}/aggregates', [], []),
        )

    def test_a_repeated_transaction_has_one_line(self) -> None:
        self.make_host(HOST, 'compute-1')
        self.logged()
        original = generation._increment_one
        with mock.patch.object(generation, '_increment_one') as increment:
            increment.side_effect = lambda *args: 0 if increment.call_count < 3 else original(*args)
            body = {'resource_provider_generation': 1, 'traits': ['HW_CPU_X86_AVX']}
            self.send_ok('PUT', f'{self._path()}/traits', body)
        self.assertEqual(3, increment.call_count)
        self.assertEqual([f'traits of compute-1 ({HOST}): +HW_CPU_X86_AVX'], self.logged())

    def test_requests_that_change_nothing_have_no_line(self) -> None:
        self.make_host(HOST, 'compute-1', VCPU={'total': 8})
        self.logged()
        for method, path, body in (
            ('POST', '/resource_providers', {'name': 'compute-1'}),
            ('PUT', f'{self._path()}/inventories', self._inventories(7)),
            ('PUT', f'/allocations/{SERVER}', claim(VCPU=9)),
        ):
            self.assertEqual(409, self.send(method, path, body).status_code)
        failure = mock.Mock(side_effect=sa.exc.OperationalError('COMMIT', None, Exception()))
        with mock.patch.object(sa.Connection, 'commit', failure):
            response = self.send('POST', '/resource_providers', {'name': 'compute-2'})
        self.assertGreaterEqual(response.status_code, 500)
        failure.assert_called_once_with()
        self.assertEqual([], self.logged())
