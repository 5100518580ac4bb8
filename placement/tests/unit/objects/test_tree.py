"""Who belongs to the subtree of a provider."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.objects import tree

#       1
#     2   3
#    4 5
PARENTS = {1: None, 2: 1, 3: 1, 4: 2, 5: 2}


class SubtreeTest(base.BaseTestCase):
    def test_a_leaf_is_its_own_subtree(self):
        self.assertEqual({4}, tree.subtree(4, PARENTS))

    def test_a_branch_takes_its_leaves_along(self):
        self.assertEqual({2, 4, 5}, tree.subtree(2, PARENTS))

    def test_the_root_has_everything(self):
        self.assertEqual(set(PARENTS), tree.subtree(1, PARENTS))

    @given(st.lists(st.integers(0, 100), max_size=30))
    def test_members_are_those_with_the_provider_among_their_ancestors(self, choices):
        parents: dict[int, int | None] = {0: None}
        for number, choice in enumerate(choices, 1):
            parents[number] = choice % number

        def ancestors(member: int | None) -> set[int]:
            found = set()
            while member is not None:
                found.add(member)
                member = parents[member]
            return found

        for provider in parents:
            expected = {member for member in parents if provider in ancestors(member)}
            self.assertEqual(expected, tree.subtree(provider, parents))
