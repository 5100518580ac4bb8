"""Provider lists, candidates and claims apply the capacity that clients compute from inventories.

Clients read the ratio from GET inventories: MySQL and MariaDB store it in single precision.
"""

from collections.abc import Mapping
import contextlib
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Setup:
    """The inventory of one provider, and the part of its capacity that is in use."""

    total: int
    ratio: float
    reserved: int = 0
    used_share: float = 0.0

    def body(self) -> dict[str, Any]:
        return {'total': self.total, 'reserved': self.reserved, 'allocation_ratio': self.ratio}


def capacity_of(shown: Mapping[str, Any]) -> float:
    """Return the capacity of an inventory in a response, as clients compute it."""
    return float((shown['total'] - shown['reserved']) * shown['allocation_ratio'])


# Short decimals, decimals that single precision cannot store, and both ends of the range.
_ratios = (
    st.integers(min_value=1, max_value=200_000).map(lambda n: n / 10_000)
    | st.sampled_from([0.7, 0.9, 1.15, 1.3, 1.1, 4.35, 16.0])
    | st.floats(min_value=0.001, max_value=64.0)
    | st.sampled_from([0.0, 1e-45, 1e-7, 1e20, 3.40282e38])
)
_setups = st.builds(
    Setup,
    total=st.integers(min_value=20, max_value=1000)
    | st.integers(min_value=2, max_value=100).map(lambda n: n * 10)
    | st.integers(min_value=20, max_value=MAX_INT),
    ratio=_ratios,
    reserved=st.just(0) | st.integers(min_value=0, max_value=20),
    used_share=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
_lists_of_setups = st.lists(_setups, min_size=PROVIDERS, max_size=PROVIDERS)
_SELECTED = [
    Setup(10, 0.7),
    Setup(100, 0.7),
    Setup(10, 0.9),
    Setup(100, 1.15),
    Setup(10, 1.3),
    Setup(1000, 1.001),
    Setup(30, 0.7, 20),
    Setup(200, 0.57, 100, 0.5),
    Setup(1, 1 / 3),
    # Responses have six digits of single precision. Rounding them up adds 4 in a million.
    Setup(1_000_000, 0.1234555),
    Setup(1_000_000, 0.1234565, 0, 0.5),
    Setup(MAX_INT, 3.40282e38),
    Setup(MAX_INT, 1e-45),
    Setup(5, 0.0),
    Setup(5, -1.0, 10),
    Setup(5, 0.1, 10),
]


class CapacityTest(testcase.RaceTestCase):
    def setUp(self) -> None:
        super().setUp()
        # No tree of the first page has an inventory, so the database evaluates the capacity of the
        # trees on the next page. With `in_tree`, there is only one page.
        for _ in range(20):
            self.make_provider()
        self.own = [self.make_provider() for _ in range(PROVIDERS)]

    def test_selected_ratios(self) -> None:
        self.check(_SELECTED)

    def test_random_ratios(self) -> None:
        @SETTINGS
        @hypothesis.given(_lists_of_setups)
        def check(setups: list[Setup]) -> None:
            self.check(setups)

        check()

    def check(self, setups: list[Setup]) -> None:
        shown = {own: self.replace(own, setup) for own, setup in zip(self.own, setups, strict=True)}
        used = {
            own: math.floor(_bounded(capacity_of(shown[own])) * setup.used_share)
            for own, setup in zip(self.own, setups, strict=True)
        }
        with self.claimed({own: amount for own, amount in used.items() if amount > 0}):
            amounts = {
                own: math.floor(_bounded(capacity_of(inventory))) - used[own]
                for own, inventory in shown.items()
            }
            for own, free in amounts.items():
                for amount in (free, free + 1):
                    if 0 < amount <= MAX_INT:
                        self.check_amount(amount, shown, used)
                        self.check_claim(own, amount, shown[own], used[own])

    def replace(self, own: str, setup: Setup) -> Mapping[str, Any]:
        """Replace the inventory of a provider, and return it as clients read it."""
        path = f'/resource_providers/{own}/inventories'
        generation = self.send_ok('GET', path)['resource_provider_generation']
        body = {
            'resource_provider_generation': generation,
            'inventories': {'VCPU': setup.body()},
        }
        self.send_ok('PUT', path, body)
        shown: Mapping[str, Any] = self.send_ok('GET', path)['inventories']['VCPU']
        return shown

    @contextlib.contextmanager
    def claimed(self, amounts: Mapping[str, int]) -> Any:
        """Allocate amounts of providers, which fit, until the context ends."""
        path = f'/allocations/{uuid.uuid4()}'
        if amounts:
            self.send_ok('PUT', path, testcase.claim(dict(amounts)))
        try:
            yield
        finally:
            if amounts:
                self.send_ok('DELETE', path)

    def check_amount(
        self, amount: int, shown: Mapping[str, Mapping[str, Any]], used: Mapping[str, int]
    ) -> None:
        """Check the providers of an amount: in lists, and in candidates of both kinds of pages."""
        able = {own for own, inventory in shown.items() if self.fits(amount, inventory, used[own])}
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

    def fits(self, amount: int, inventory: Mapping[str, Any], used: int) -> bool:
        return used + amount <= capacity_of(inventory)

    def check_claim(self, own: str, amount: int, inventory: Mapping[str, Any], used: int) -> None:
        path = f'/allocations/{uuid.uuid4()}'
        status = self.send('PUT', path, testcase.claim({own: amount})).status
        fits = self.fits(amount, inventory, used)
        self.assertEqual(204 if fits else 409, status, f'{amount} of {inventory}, {used} in use')
        if fits:
            self.send_ok('DELETE', path)


def _bounded(number: float) -> float:
    return max(-1.0, min(number, MAX_INT))
