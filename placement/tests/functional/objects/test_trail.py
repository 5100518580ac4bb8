"""The trail: the examples of the page about logging are the lines of these requests."""

import logging
from typing import Any
from unittest import mock

import fixtures

from placement.db import retry
from placement.objects import generation
from placement.tests.functional import base
from placement.tests.functional.log import examples

HOST = '9b0d3f8e-6c1a-4d52-8f47-2e5b7a90c1d6'
OTHER_HOST = '51aa07c4-2f9b-4e36-b8d0-64c7e1f3a958'
SERVER = '6f0a2c71-93de-4b58-a1e4-7d8c05f3b296'
OTHER_SERVER = 'c81d4f60-5b27-49ea-9d13-f02a86e7b5c4'


class TestCase(base.TestCase):
    """`logged` returns the lines that requests log."""

    LOGGER = 'placement.claims'

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(self.LOGGER, logging.INFO))

    def logged(self) -> list[str]:
        """Return the lines since the last call."""
        lines = self.log.output.splitlines()
        self.log.reset_output()
        return lines

    def make_host(self, uuid: str, name: str, **inventories: dict[str, int]) -> None:
        self.send_ok('POST', '/resource_providers', {'name': name, 'uuid': uuid})
        body = {'resource_provider_generation': 0, 'inventories': inventories}
        self.send_ok('PUT', f'/resource_providers/{uuid}/inventories', body)


def claim(generation: int | None = None, uuid: str = HOST, **resources: int) -> dict[str, Any]:
    """Return the body of a request for an allocation from one provider."""
    return {
        'allocations': {uuid: {'resources': resources}} if resources else {},
        'project_id': 'p',
        'user_id': 'u',
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


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
            mock.patch.object(retry, 'DEADLINE', 0),
            mock.patch.object(retry, '_pause', return_value=0),
            mock.patch.object(generation, '_increment_one', return_value=0) as increment,
        ):
            lines += self.put(claim(3, VCPU=2))
        # A refused request has one line, and not one for each attempt.
        self.assertGreater(increment.call_count, 1)
        self.assertEqual(examples.example('refused-claims').splitlines(), lines)

    def test_the_line_names_the_refused_consumer_of_several(self) -> None:
        body = {SERVER: claim(VCPU=2), OTHER_SERVER: claim(VCPU=18)}
        (line,) = self.refuse('POST', '/allocations', body)
        self.assertTrue(line.startswith(f'claim of {OTHER_SERVER} refused: VCPU on {HOST}: '), line)

    def test_amounts_of_several_consumers_are_added(self) -> None:
        body = {SERVER: claim(MEMORY_MB=600), OTHER_SERVER: claim(MEMORY_MB=500)}
        self.assertEqual(
            [
                f'claim of {OTHER_SERVER} refused: MEMORY_MB on {HOST}: '
                '1100 requested, 0 of 1000 used'
            ],
            self.refuse('POST', '/allocations', body),
        )

    def test_errors_of_no_single_consumer(self) -> None:
        unknown = SERVER
        body = {SERVER: claim(VCPU=2, uuid=unknown), OTHER_SERVER: claim(VCPU=2)}
        self.assertEqual(
            [f'claim of {SERVER}, {OTHER_SERVER} refused: provider {unknown}: unknown'],
            self.refuse('POST', '/allocations', body),
        )

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
            self.assertEqual(
                [f'claim of {expected}'],
                self.refuse('POST', '/reshaper', body),
            )

    def test_accepted_claims_log_nothing(self) -> None:
        self.logged()
        self.send_ok('PUT', f'/allocations/{SERVER}', claim(VCPU=2))
        self.send_ok('DELETE', f'/allocations/{SERVER}')
        self.assertEqual([], self.logged())
