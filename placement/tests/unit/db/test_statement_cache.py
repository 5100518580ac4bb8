"""The cache of compiled statements does not exceed its memory limit."""

import gc

import fixtures
from oslotest import base
import sqlalchemy as sa

from placement.db import statement_cache

TABLE = sa.table('number', sa.column('n'))


def compiled(conditions: int) -> sa.Compiled:
    """Return a compiled statement whose length grows with the number of conditions."""
    return sa.select(TABLE).where(*(TABLE.c.n != n for n in range(conditions))).compile()


SMALL, LARGE = compiled(1), compiled(40)
SIZE = statement_cache.estimated_bytes(SMALL)


class StatementCacheTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        # A real garbage collection in the test process would take too long.
        self.collect = self.useFixture(fixtures.MockPatchObject(gc, 'collect')).mock

    def test_the_estimated_memory_stays_below_the_capacity(self):
        cache = statement_cache.StatementCache(capacity=SIZE * 20)
        for number in range(1000):
            cache[number] = SMALL
            self.assertLessEqual(cache.bytes, cache.capacity)
            self.assertEqual(SIZE * len(cache), cache.bytes)
            self.assertIs(SMALL, cache[number])

    def test_a_full_cache_is_emptied(self):
        cache = statement_cache.StatementCache(capacity=SIZE * 20)
        for number in range(20):
            cache[number] = SMALL
        self.collect.assert_not_called()
        self.assertEqual(list(range(20)), list(cache))
        cache[20] = SMALL
        self.assertEqual([20], list(cache))
        self.collect.assert_called_once_with()
        self.assertIs(SMALL, cache.get(20))
        self.assertIsNone(cache.get(0))

    def test_a_statement_that_is_too_large_is_not_stored(self):
        large = statement_cache.estimated_bytes(LARGE)
        capacity = int(large / statement_cache.LARGEST_SHARE)
        too_small = statement_cache.StatementCache(capacity=capacity - 100)
        sufficient = statement_cache.StatementCache(capacity=capacity + 100)
        too_small['key'] = sufficient['key'] = LARGE
        self.assertEqual((0, 0), (len(too_small), too_small.bytes))
        self.assertEqual((1, large), (len(sufficient), sufficient.bytes))

    def test_a_statement_that_two_threads_compile_counts_once(self):
        cache = statement_cache.StatementCache()
        cache['key'] = SMALL
        cache['key'] = compiled(1)
        self.assertEqual((SMALL, SIZE), (cache['key'], cache.bytes))
        cache.clear()
        self.assertEqual((0, 0), (len(cache), cache.bytes))

    def test_values_of_an_in_count(self):
        """A cache key refers to the values of the IN condition with which it was compiled."""
        few, many = (
            statement_cache.estimated_bytes(
                sa.select(TABLE).where(TABLE.c.n.in_(range(1000, 1000 + count))).compile()
            )
            for count in (1, 10_001)
        )
        self.assertGreaterEqual(many - few, 10_000 * 28)
