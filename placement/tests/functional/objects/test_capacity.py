"""Provider lists, candidates and claims apply the capacity that clients compute from inventories.

Clients read the ratio from GET inventories: MySQL and MariaDB store it in single precision.
"""

from collections.abc import Iterator, Mapping
import contextlib
import math
from typing import Any
import uuid

import hypothesis
from hypothesis import strategies as st

from placement.capacity import MAX_INT
from placement.tests.functional.races import testcase
from placement.tests.properties import REPEATABLE, examples

PROVIDERS = 16
SETTINGS = hypothesis.settings(REPEATABLE, max_examples=examples(6))
Inventory = Mapping[str, Any]


def capacity_of(shown: Inventory) -> float:
    """Return the capacity of an inventory in a response, as clients compute it."""
    return float((shown['total'] - shown['reserved']) * shown['allocation_ratio'])


def fits(amount: int, shown: Inventory, used: int) -> bool:
    return used + amount <= capacity_of(shown)


# Short decimals, decimals that single precision cannot store, and both ends of the range.
_ratios = (
    st.integers(min_value=1, max_value=200_000).map(lambda n: n / 10_000)
    | st.sampled_from([0.7, 0.9, 1.15, 1.3, 1.1, 4.35, 16.0])
    | st.floats(min_value=0.001, max_value=64.0)
    | st.sampled_from([0.0, 1e-45, 1e-7, 1e20, 3.40282e38])
)
# The total, the ratio, the reserved amount, and the part of the capacity that is in use.
_inventories = st.tuples(
    st.integers(min_value=20, max_value=1000)
    | st.integers(min_value=2, max_value=100).map(lambda n: n * 10)
    | st.integers(min_value=20, max_value=MAX_INT),
    _ratios,
    st.just(0) | st.integers(min_value=0, max_value=20),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
_SELECTED = [
    (10, 0.7, 0, 0.0),
    (100, 0.7, 0, 0.0),
    (10, 0.9, 0, 0.0),
    (100, 1.15, 0, 0.0),
    (10, 1.3, 0, 0.0),
    (1000, 1.001, 0, 0.0),
    (30, 0.7, 20, 0.0),
    (200, 0.57, 100, 0.5),
    (1, 1 / 3, 0, 0.0),
    # Responses have six digits of single precision. Rounding them up adds 4 in a million.
    (1_000_000, 0.1234555, 0, 0.0),
    (1_000_000, 0.1234565, 0, 0.5),
    (MAX_INT, 3.40282e38, 0, 0.0),
    (MAX_INT, 1e-45, 0, 0.0),
    (5, 0.0, 0, 0.0),
    (5, -1.0, 10, 0.0),
    (5, 0.1, 10, 0.0),
]


class CapacityTest(testcase.RaceTestCase):
    def setUp(self) -> None:
        super().setUp()
        # No tree of the first page has an inventory, so the database evaluates the capacity of the
        # trees on the next page. With `in_tree`, there is only one page.
        for _ in range(20):
            self.make_provider()
        self.own = [self.make_provider() for _ in range(PROVIDERS)]

    def test_ratios(self) -> None:
        @SETTINGS
        @hypothesis.example(_SELECTED)
        @hypothesis.given(st.lists(_inventories, min_size=PROVIDERS, max_size=PROVIDERS))
        def check(inventories: list[Any]) -> None:
            shown, used = {}, {}
            for own, (*inventory, share) in zip(self.own, inventories, strict=True):
                shown[own] = self.replace(own, *inventory)
                used[own] = math.floor(_bounded(capacity_of(shown[own])) * share)
            with self.claimed({own: amount for own, amount in used.items() if amount > 0}):
                self.check(shown, used)

        check()

    def check(self, shown: Mapping[str, Inventory], used: Mapping[str, int]) -> None:
        """Request the free capacity of each provider, and one more."""
        for own, inventory in shown.items():
            free = math.floor(_bounded(capacity_of(inventory))) - used[own]
            for amount in (free, free + 1):
                if 0 < amount <= MAX_INT:
                    self.check_amount(amount, shown, used)
                    path = f'/allocations/{uuid.uuid4()}'
                    status = self.send('PUT', path, testcase.claim({own: amount})).status
                    expected = 204 if fits(amount, inventory, used[own]) else 409
                    message = f'{amount} of {inventory}, {used[own]} used'
                    self.assertEqual(expected, status, message)
                    if status == 204:
                        self.send_ok('DELETE', path)

    def replace(self, own: str, total: int, ratio: float, reserved: int) -> Inventory:
        """Replace the inventory of a provider, and return it as clients read it."""
        path = f'/resource_providers/{own}/inventories'
        generation = self.send_ok('GET', path)['resource_provider_generation']
        vcpu = {'total': total, 'reserved': reserved, 'allocation_ratio': ratio}
        body = {'resource_provider_generation': generation, 'inventories': {'VCPU': vcpu}}
        self.send_ok('PUT', path, body)
        shown: Inventory = self.send_ok('GET', path)['inventories']['VCPU']
        return shown

    @contextlib.contextmanager
    def claimed(self, amounts: dict[str, int]) -> Iterator[None]:
        """Allocate amounts of providers, which fit, until the context ends."""
        path = f'/allocations/{uuid.uuid4()}'
        if amounts:
            self.send_ok('PUT', path, testcase.claim(amounts))
        try:
            yield
        finally:
            if amounts:
                self.send_ok('DELETE', path)

    def check_amount(
        self, amount: int, shown: Mapping[str, Inventory], used: Mapping[str, int]
    ) -> None:
        """Check the providers of an amount: in lists, and in candidates of both kinds of pages."""
        able = {own for own, inventory in shown.items() if fits(amount, inventory, used[own])}
        query = f'resources=VCPU:{amount}'
        listed = self.send_ok('GET', f'/resource_providers?{query}')['resource_providers']
        self.assertEqual(able, {provider['uuid'] for provider in listed}, f'list, {query}')
        some = next(iter(shown))
        for in_tree, expected in (('', able), (f'&in_tree={some}', able & {some})):
            found = self.send_ok('GET', f'/allocation_candidates?{query}{in_tree}')
            summaries = found['provider_summaries']
            self.assertEqual(expected, set(summaries), f'candidates, {query}{in_tree}')
            for own in expected:
                capacity = {'capacity': int(capacity_of(shown[own])), 'used': used[own]}
                self.assertEqual({'VCPU': capacity}, summaries[own]['resources'])


def _bounded(number: float) -> float:
    return max(-1.0, min(number, MAX_INT))
