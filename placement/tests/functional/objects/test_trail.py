"""The trail: the examples of the page about logging are the lines of these requests."""

import logging
from typing import Any
from unittest import mock

import fixtures

from placement import exception
from placement.claims import rows
from placement.objects import generation
from placement.tests.functional import base
from placement.tests.functional.log import examples

HOST = '9b0d3f8e-6c1a-4d52-8f47-2e5b7a90c1d6'
OTHER_HOST = '51aa07c4-2f9b-4e36-b8d0-64c7e1f3a958'
AGGREGATE = '7d2c51e0-48af-4b6d-9c3e-15f80a72d4b6'
OTHER_AGGREGATE = 'e1f0b36a-72d9-4c85-a04e-8b6d3c91f527'
SERVER = '6f0a2c71-93de-4b58-a1e4-7d8c05f3b296'
OTHER_SERVER = 'c81d4f60-5b27-49ea-9d13-f02a86e7b5c4'
THIRD_SERVER = 'c81d4f60-5b27-49ea-9d13-f02a86e7b5c5'
LOST = exception.ConcurrentChange('The generation')


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
            mock.patch.object(rows, 'read_facts') as read,
        ):
            read.side_effect = exception.ConcurrentChange('A provider', [HOST])
            lines += self.put(claim(3, VCPU=2))
        # A refused request has one line, and not one for each attempt.
        self.assertGreater(read.call_count, 1)
        self.assertEqual(examples.example('refusal-lines').splitlines(), lines)

    def test_several_consumers_and_reshapes(self) -> None:
        """The line names the consumers whose allocations are refused."""

        def reshape(given: int, allocations: Any, *names: str) -> Any:
            inventories = {name: {'total': 4} for name in names}
            own = {'resource_provider_generation': given, 'inventories': inventories}
            return {'inventories': {HOST: own}, 'allocations': allocations}

        def both(first: Any, second: Any) -> Any:
            return {SERVER: first, OTHER_SERVER: second}

        self.send_ok('PUT', f'/allocations/{THIRD_SERVER}', claim(MEMORY_MB=8))
        vcpu, on_host = claim(VCPU=2), f'refused: VCPU on {HOST}: '
        for path, body, line in (
            ('/allocations', both(vcpu, claim(VCPU=18)), f'{OTHER_SERVER} {on_host}'),
            (
                *('/allocations', both(claim(MEMORY_MB=600), claim(MEMORY_MB=500))),
                f'{OTHER_SERVER} refused: MEMORY_MB on {HOST}: 1100 requested, 8 of 1000 used',
            ),
            (
                *('/allocations', both(claim(VCPU=2, uuid=SERVER), vcpu)),
                f'{SERVER}, {OTHER_SERVER} refused: provider {SERVER}: unknown',
            ),
            ('/reshaper', reshape(7, {}), f'- refused: provider {HOST}: generation 7 given, 2 '),
            ('/reshaper', reshape(2, {}, 'VCPU'), f'- refused: MEMORY_MB on {HOST}: inventory in '),
            (
                *('/reshaper', reshape(2, {SERVER: claim(VCPU=5)}, 'VCPU', 'MEMORY_MB')),
                f'{SERVER} {on_host}5 requested, 0 of 4 used',
            ),
            (
                *('/reshaper', reshape(2, {SERVER: claim(1, VCPU=4)}, 'VCPU')),
                f'{SERVER} refused: consumer generation 1 given, null stored',
            ),
        ):
            (logged,) = self.refuse('POST', path, body)
            self.assertTrue(logged.startswith(f'claim of {line}'), logged)


class ChangesTest(TestCase):
    LOGGER = 'placement.changes'

    def test_the_examples_of_the_page(self) -> None:
        other = {'VCPU': {'total': 8}, 'VGPU': {'total': 1}}
        old_vcpu, vcpu, memory = (
            *({'total': 64, 'allocation_ratio': 4.0}, {'total': 72, 'allocation_ratio': 8.0}),
            {'total': 262144},
        )
        both = claim(VCPU=4, MEMORY_MB=8192)
        both['allocations'][OTHER_HOST] = {'resources': {'VGPU': 1}}
        providers, own, server = '/resource_providers', self._path(), f'/allocations/{SERVER}'
        moved = {'name': 'compute-1', 'parent_provider_uuid': OTHER_HOST}
        lines: list[str] = []
        for is_example, method, path, body in (
            (True, 'POST', providers, {'name': 'compute-1', 'uuid': HOST}),
            (False, 'PUT', own, {'name': 'host-1'}),
            (False, 'POST', providers, {'name': 'compute-2', 'uuid': OTHER_HOST}),
            (False, 'PUT', f'{self._path(OTHER_HOST)}/inventories', self._inventories(0, **other)),
            (True, 'PUT', own, {'name': 'compute-1'}),
            (True, 'PUT', own, moved),
            (True, *self._replace(0, 'inventories', {'VCPU': old_vcpu, 'MEMORY_MB': memory})),
            (True, *self._replace(1, 'inventories', {'VCPU': vcpu, 'PCPU': {'total': 8}})),
            (False, *self._replace(2, 'inventories', {'VCPU': vcpu, 'MEMORY_MB': memory})),
            (False, 'PUT', '/traits/CUSTOM_GOLD', None),
            (False, *self._replace(3, 'traits', ['CUSTOM_GOLD'])),
            (True, *self._replace(4, 'traits', ['COMPUTE_STATUS_DISABLED'])),
            (False, *self._replace(5, 'aggregates', [OTHER_AGGREGATE])),
            (True, *self._replace(6, 'aggregates', [AGGREGATE])),
            (True, 'PUT', server, both),
            (False, 'PUT', server, claim(1, VCPU=4)),
            (True, 'PUT', server, claim(2, OTHER_HOST, VCPU=8)),
            (True, 'PUT', server, claim(3)),
            (False, *self._replace(9, 'inventories', {})),
            (True, 'DELETE', own, None),
        ):
            self.send_ok(method, path, body)
            new = self.logged()
            lines += new if is_example else []
        # On the page, the line of the deletion follows those of the provider.
        lines.insert(3, lines.pop())
        self.assertEqual(examples.example('change-lines').splitlines(), lines)

    def _path(self, uuid: str = HOST) -> str:
        return f'/resource_providers/{uuid}'

    def _inventories(self, given: int, **inventories: dict[str, Any]) -> dict[str, Any]:
        return {'resource_provider_generation': given, 'inventories': inventories}

    def _replace(self, given: int, kind: str, value: Any) -> tuple[str, str, Any]:
        """Return the request that replaces the inventories, the traits or the aggregates."""
        return 'PUT', f'{self._path()}/{kind}', {'resource_provider_generation': given, kind: value}

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
        added = self._inventories(4, VGPU={'total': 1})
        self.check(
            ('POST', own, vcpu, [f'inventory of {label}VCPU added (total 8)']),
            ('PUT', f'{own}/VCPU', total, [f'inventory of {label}VCPU total 8 -> 9']),
            ('DELETE', f'{own}/VCPU', None, [f'inventory of {label}VCPU removed (total 9)']),
            ('PUT', own, added, [f'inventory of {label}VGPU added (total 1)']),
            ('DELETE', own, None, [f'inventory of {label}VGPU removed (total 1)']),
            (
                *self._replace(6, 'traits', names),
                [f'traits of {label}+{names[0]} +{names[1]}'],
            ),
            ('PUT', f'{path}/aggregates', [AGGREGATE], [f'aggregates of {HOST}: +{AGGREGATE}']),
            ('PUT', f'{path}/aggregates', [AGGREGATE], []),
            ('DELETE', f'{path}/traits', None, [f'traits of {label}-{names[0]} -{names[1]}']),
            ('DELETE', f'{path}/traits', None, []),
            ('PUT', f'{path}/aggregates', [], [f'aggregates of {HOST}: -{AGGREGATE}']),
            ('PUT', f'{path}/aggregates', [], []),
        )

    def test_a_repeated_transaction_has_one_line(self) -> None:
        """A transaction that is not committed has none."""
        self.make_host(HOST, 'compute-1')
        self.logged()
        with mock.patch.object(generation, 'increment_providers') as increment:
            increment.side_effect = [LOST, LOST, None]
            body = {'resource_provider_generation': 1, 'traits': ['HW_CPU_X86_AVX']}
            self.send_ok('PUT', f'{self._path()}/traits', body)
        self.assertEqual(3, increment.call_count)
        self.assertEqual([f'traits of compute-1 ({HOST}): +HW_CPU_X86_AVX'], self.logged())


class CapacityTest(TestCase):
    LOGGER = 'placement.objects'

    def test_a_capacity_below_the_usage_is_logged(self) -> None:
        self.make_host(HOST, 'compute-1', VCPU={'total': 4})
        self.send_ok('PUT', f'/allocations/{SERVER}', claim(VCPU=4))
        body = {'resource_provider_generation': 2, 'total': 2}
        self.send_ok('PUT', f'/resource_providers/{HOST}/inventories/VCPU', body)
        self.assertEqual(
            [f'The usage of VCPU on resource provider {HOST} exceeds its new capacity'],
            self.logged(),
        )
