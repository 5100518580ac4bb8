"""The memory for cached statements is bounded, whatever requests a client sends."""

import uuid

import os_traits

from placement import db_api
from placement.db import statement_cache
from placement.tests.functional import base

TRAITS = os_traits.get_traits()


class StatementMemoryTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        provider = self.make_provider('host', {'VCPU': 8})
        self.send_ok(
            'PUT',
            f'/resource_providers/{provider}/traits',
            {'resource_provider_generation': 1, 'traits': TRAITS[:2]},
        )
        self.aggregate = str(uuid.uuid4())
        self.send_ok(
            'PUT',
            f'/resource_providers/{provider}/aggregates',
            {'resource_provider_generation': 2, 'aggregates': [self.aggregate]},
        )

    @property
    def cache(self) -> statement_cache.StatementCache:
        engine = db_api.get_placement_engine()
        cache = engine.get_execution_options().get('compiled_cache')
        self.assertIsInstance(cache, statement_cache.StatementCache)
        return cache

    def test_a_repeated_condition_compiles_no_new_statement(self):
        first, second = TRAITS[:2]
        for path in ('/allocation_candidates?resources=VCPU:1', '/resource_providers?'):
            for condition in (
                f'&required={first}',
                f'&required=in:{first},{second}',
                f'&required={first},!{TRAITS[2]}',
                f'&member_of={self.aggregate}',
                f'&member_of=in:{self.aggregate},{uuid.uuid4()}',
            ):
                # The second search reads its first page with the names.
                for _ in range(2):
                    once = self.send_ok('GET', path + condition)
                cached = set(self.cache)
                for count in range(2, 12):
                    self.assertEqual(once, self.send_ok('GET', path + condition * count))
                self.assertEqual(cached, set(self.cache), condition)

    def test_the_cache_never_exceeds_its_capacity(self):
        cache = self.cache
        cache.clear()
        cache.capacity = 2 * 2**20
        largest = compiled = 0
        for count in range(1, 30):
            names = ','.join(TRAITS[:count])
            for path in ('/allocation_candidates?resources=VCPU:1&', '/resource_providers?'):
                before = set(cache)
                self.send_ok('GET', f'{path}required={names}')
                compiled += len(set(cache) - before)
                largest = max(largest, cache.bytes)
                self.assertLessEqual(cache.bytes, cache.capacity)
        self.assertGreater(compiled, len(cache))
        self.assertGreater(largest, cache.capacity / 2)

    def test_writes_use_the_cache(self):
        self.cache.clear()
        self.make_provider('another', {'VCPU': 8})
        self.assertGreater(len(self.cache), 0)
