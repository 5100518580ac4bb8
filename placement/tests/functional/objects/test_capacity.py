"""Whether an amount fits is the same for lists, candidates and claims, and is what clients compute.

The ratio is the one that GET inventories shows: MySQL and MariaDB keep it in single precision.
"""

from collections.abc import Mapping
import contextlib
from dataclasses import dataclass
import math
from typing import Any
from unittest import mock
import uuid

import hypothesis
from hypothesis import strategies as st

from placement.candidates import search
from placement.tests.functional.races import arena

MAX_INT = 2**31 - 1
PROVIDERS = 16
SETTINGS = hypothesis.settings(
    max_examples=12,
    derandomize=True,
    phases=[hypothesis.Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory. Part of its capacity is in use, if it has any."""

    total: int
    ratio: float
    reserved: int = 0
    used_share: float = 0.0

    def body(self) -> dict[str, Any]:
        return {'total': self.total, 'reserved': self.reserved, 'allocation_ratio': self.ratio}


def capacity(shown: Mapping[str, Any]) -> float:
    return float((shown['total'] - shown['reserved']) * shown['allocation_ratio'])


# Decimals that look exact, decimals that single precision cuts off, and both ends of the range.
_ratios = (
    st.integers(min_value=1, max_value=200_000).map(lambda n: n / 10_000)
    | st.sampled_from([0.7, 0.9, 1.15, 1.3, 1.1, 4.35, 16.0])
    | st.floats(min_value=0.001, max_value=64.0)
    | st.sampled_from([0.0, 1e-45, 1e-7, 1e20, 3.40282e38])
)
_records = st.builds(
    Inventory,
    total=st.integers(min_value=20, max_value=1000)
    | st.integers(min_value=2, max_value=100).map(lambda n: n * 10)
    | st.integers(min_value=20, max_value=MAX_INT),
    ratio=_ratios,
    reserved=st.just(0) | st.integers(min_value=0, max_value=20),
    used_share=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
_worlds = st.lists(_records, min_size=PROVIDERS, max_size=PROVIDERS)
_KNOWN = [
    Inventory(10, 0.7),
    Inventory(100, 0.7),
    Inventory(10, 0.9),
    Inventory(100, 1.15),
    Inventory(10, 1.3),
    Inventory(1000, 1.001),
    Inventory(30, 0.7, 20),
    Inventory(200, 0.57, 100, 0.5),
    Inventory(1, 1 / 3),
    # Six digits of single precision are shown, and rounding them up adds 4 in a million.
    Inventory(1_000_000, 0.1234555),
    Inventory(1_000_000, 0.1234565, 0, 0.5),
    Inventory(MAX_INT, 3.40282e38),
    Inventory(MAX_INT, 1e-45),
    Inventory(5, 0.0),
    Inventory(5, -1.0, 10),
    Inventory(5, 0.1, 10),
]


class CapacityTest(arena.Arena):
    def setUp(self) -> None:
        super().setUp()
        # The first tree, which has nothing: if the first page is only that, the database is asked
        # who fits from there on.
        self.make_provider()
        self.own = [self.make_provider() for _ in range(PROVIDERS)]

    def test_known_ratios(self) -> None:
        self.check(_KNOWN)

    def test_random_ratios(self) -> None:
        @SETTINGS
        @hypothesis.given(_worlds)
        def check(records: list[Inventory]) -> None:
            self.check(records)

        check()

    def check(self, records: list[Inventory]) -> None:
        shown = {
            own: self.replace(own, record) for own, record in zip(self.own, records, strict=True)
        }
        used = {
            own: math.floor(_bounded(capacity(shown[own])) * record.used_share)
            for own, record in zip(self.own, records, strict=True)
        }
        with self.claimed({own: amount for own, amount in used.items() if amount > 0}):
            amounts = {
                own: math.floor(_bounded(capacity(inventory))) - used[own]
                for own, inventory in shown.items()
            }
            for own, amount in amounts.items():
                for asked in (amount, amount + 1):
                    if 0 < asked <= MAX_INT:
                        self.check_amount(asked, shown, used)
                        self.check_claim(own, asked, shown[own], used[own])

    def replace(self, own: str, record: Inventory) -> Mapping[str, Any]:
        """Replace the inventory of a provider, and give it as clients read it."""
        path = f'/resource_providers/{own}/inventories'
        generation = self.sure('GET', path)['resource_provider_generation']
        body = {
            'resource_provider_generation': generation,
            'inventories': {'VCPU': record.body()},
        }
        self.sure('PUT', path, body)
        shown: Mapping[str, Any] = self.sure('GET', path)['inventories']['VCPU']
        return shown

    @contextlib.contextmanager
    def claimed(self, amounts: Mapping[str, int]) -> Any:
        """Hold allocations of providers; they fit."""
        path = f'/allocations/{uuid.uuid4()}'
        if amounts:
            self.sure('PUT', path, arena.claim(dict(amounts)))
        try:
            yield
        finally:
            if amounts:
                self.sure('DELETE', path)

    def check_amount(
        self, amount: int, shown: Mapping[str, Mapping[str, Any]], used: Mapping[str, int]
    ) -> None:
        """Check who can serve an amount: in lists, and in candidates of both kinds of pages."""
        able = {own for own, record in shown.items() if used[own] + amount <= capacity(record)}
        query = f'resources=VCPU:{amount}'
        listed = self.sure('GET', f'/resource_providers?{query}')['resource_providers']
        self.assertEqual(able, {provider['uuid'] for provider in listed}, f'list, {query}')
        for first_page in (1, 1000):
            with mock.patch.object(search, 'FIRST_PAGE', first_page):
                found = self.sure('GET', f'/allocation_candidates?{query}')
            summaries = found['provider_summaries']
            self.assertEqual(able, set(summaries), f'candidates, page {first_page}, {query}')
            for own in able:
                expected = {'VCPU': {'capacity': int(capacity(shown[own])), 'used': used[own]}}
                self.assertEqual(expected, summaries[own]['resources'])

    def check_claim(self, own: str, amount: int, record: Mapping[str, Any], used: int) -> None:
        path = f'/allocations/{uuid.uuid4()}'
        status = self.ask('PUT', path, arena.claim({own: amount})).status
        fits = used + amount <= capacity(record)
        self.assertEqual(204 if fits else 409, status, f'{amount} of {record}, {used} in use')
        if fits:
            self.sure('DELETE', path)


def _bounded(number: float) -> float:
    return max(-1.0, min(number, MAX_INT))
