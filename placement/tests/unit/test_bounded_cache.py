"""The set with a limited number of items."""

from oslotest import base

from placement.bounded_cache import BoundedSet


class BoundedSetTest(base.BaseTestCase):
    def test_the_first_item_is_dropped(self):
        items = BoundedSet[int](3)
        for item in (1, 2, 3, 1, 4):
            items.add(item)
        self.assertEqual([2, 3, 4], [item for item in range(6) if item in items])
        self.assertEqual(3, len(items))

    def test_discard(self):
        items = BoundedSet[str](2)
        items.add('a')
        for _ in range(2):
            items.discard('a')
        self.assertNotIn('a', items)
        self.assertEqual(0, len(items))
