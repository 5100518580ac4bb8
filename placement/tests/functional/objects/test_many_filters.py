"""GET /resource_providers with many sets of traits or aggregates, of which each provider needs one.

The database evaluates some of the sets, and the service evaluates the others.
"""

from collections.abc import Iterable
import itertools
import random

from placement import db_api
from placement.objects import provider_search
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.worlds import rows

TRAITS = tuple(f'CUSTOM_T{n}' for n in range(5))
AGGREGATES = tuple(worlds.uuid_of(f'A{n}') for n in range(5))


class ManyFiltersTest(base.TestCase):
    def setUp(self):
        super().setUp()
        # For each subset of the numbers 0 to 4, a provider with the traits and the aggregates of
        # these numbers.
        subsets = [[n for n in range(5) if mask >> n & 1] for mask in range(32)]
        lines = (
            f'rp{mask} {{{" ".join(f"T{n}" for n in numbers)}}}'
            + (f' @{",".join(f"A{n}" for n in numbers)}' if numbers else '')
            for mask, numbers in enumerate(subsets)
        )
        rows.fill(db_api.get_placement_engine(), worlds.World.of('\n'.join(lines)))
        self.numbers = {
            worlds.uuid_of(f'rp{mask}'): frozenset(numbers) for mask, numbers in enumerate(subsets)
        }

    def _found(self, *filters: str) -> set[str]:
        document = self.send_ok('GET', f'/resource_providers?{"&".join(filters)}')
        return {provider['uuid'] for provider in document['resource_providers']}

    def _having_each(self, any_sets: Iterable[frozenset[int]]) -> set[str]:
        return {
            provider
            for provider, numbers in self.numbers.items()
            if all(any_set & numbers for any_set in any_sets)
        }

    def test_any_sets(self):
        rng = random.Random(1)
        self.patch(provider_search, '_MOST_CONDITIONS', 1)
        for _ in range(25):
            any_sets = [frozenset(rng.sample(range(5), rng.randint(1, 3))) for _ in range(4)]
            expected = self._having_each(any_sets)
            for name, values in (('required', TRAITS), ('member_of', AGGREGATES)):
                filters = [f'{name}=in:{",".join(values[n] for n in s)}' for s in any_sets]
                self.assertEqual(expected, self._found(*filters), filters)

    def test_both_kinds_and_other_filters(self):
        self.patch(provider_search, '_MOST_CONDITIONS', 0)
        filters = (
            *('required=CUSTOM_T0', 'required=!CUSTOM_T4'),
            *(f'member_of={AGGREGATES[1]}', f'member_of=!{AGGREGATES[3]}'),
        )
        expected = {p for p, numbers in self.numbers.items() if {0, 1} <= numbers <= {0, 1, 2}}
        self.assertEqual(expected, self._found(*filters))
        self.assertEqual(set(), self._found('resources=VCPU:1', *filters))

    def test_an_unknown_name_is_an_error_only_if_earlier_filters_match(self):
        self.patch(provider_search, '_MOST_CONDITIONS', 0)
        for required, status in (('T0', 400), ('T9', 200)):
            if status == 200:
                self.send_ok('PUT', '/traits/CUSTOM_T9')
            path = f'/resource_providers?required=CUSTOM_{required}&required=!CUSTOM_UNKNOWN'
            self.assertEqual(status, self.send('GET', path).status_code)

    def test_thousands_of_any_sets(self):
        """The statement has few conditions: SQLite does not permit so many."""
        names = [f'CUSTOM_X{n}' for n in range(70)]
        for name in names:
            self.send_ok('PUT', f'/traits/{name}')
        provider = self.make_provider('provider')
        path = f'/resource_providers/{provider}/traits'
        # All pairs of traits: a provider may lack one trait, but not two.
        filters = [f'required=in:{a},{b}' for a, b in itertools.combinations(names, 2)]
        for generation, (missing, expected) in enumerate(((1, {provider}), (2, set()))):
            body = {'resource_provider_generation': generation, 'traits': names[missing:]}
            self.send_ok('PUT', path, body)
            self.assertEqual(expected, self._found(*filters))
