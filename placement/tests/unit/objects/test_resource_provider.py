"""The providers of a subtree."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.objects import resource_provider
from placement.tests.properties import REPEATABLE

#       1
#     2   3
#    4 5
PARENTS = {1: None, 2: 1, 3: 1, 4: 2, 5: 2}


class SubtreeTest(base.BaseTestCase):
    def test_subtree_of_a_leaf_is_the_leaf(self):
        self.assertEqual({4}, resource_provider.subtree(4, PARENTS))

    def test_subtree_has_all_descendants(self):
        self.assertEqual({2, 4, 5}, resource_provider.subtree(2, PARENTS))

    def test_subtree_of_the_root_is_the_whole_tree(self):
        self.assertEqual(set(PARENTS), resource_provider.subtree(1, PARENTS))

    def test_a_provider_may_be_its_own_ancestor_in_a_damaged_database(self):
        self.assertEqual({1, 2}, resource_provider.subtree(1, {1: 2, 2: 1, 3: None}))

    @REPEATABLE
    @given(st.lists(st.integers(0, 100), max_size=30))
    def test_subtree_has_the_providers_with_this_ancestor(self, choices):
        parents: dict[int, int | None] = {0: None}
        for number, choice in enumerate(choices, 1):
            parents[number] = choice % number

        def with_ancestors(provider: int | None) -> set[int]:
            path = set()
            while provider is not None:
                path.add(provider)
                provider = parents[provider]
            return path

        for provider in parents:
            expected = {other for other in parents if provider in with_ancestors(other)}
            self.assertEqual(expected, resource_provider.subtree(provider, parents))
