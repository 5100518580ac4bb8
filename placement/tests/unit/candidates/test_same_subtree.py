"""The preorder of providers on which same_subtree is decided."""

from oslotest import base

from placement.candidates import model, same_subtree
from placement.candidates.same_subtree import Forest


def provider(id_: int, parent_id: int | None) -> model.Provider:
    return model.Provider(
        id=id_,
        uuid=f'uuid {id_}',
        root_id=1,
        parent_id=parent_id,
        traits=frozenset(),
        aggregates=frozenset(),
        inventories={},
    )


class ForestTest(base.BaseTestCase):
    def forest(self, **parents: int | None) -> Forest:
        """Return the forest of providers p1, p2, ... with the given parents."""
        return same_subtree.forest_of(
            provider(int(name.removeprefix('p')), parent) for name, parent in parents.items()
        )

    def subtree(self, forest: Forest, id_: int) -> set[int]:
        position = forest.position[id_]
        return set(forest.ids[position : forest.end[position]])

    def test_subtrees_are_contiguous(self):
        forest = self.forest(p1=None, p2=1, p3=2, p4=1, p5=None)
        self.assertEqual({1, 2, 3, 4}, self.subtree(forest, 1))
        self.assertEqual({2, 3}, self.subtree(forest, 2))
        self.assertEqual({4}, self.subtree(forest, 4))
        self.assertEqual({5}, self.subtree(forest, 5))

    def test_a_provider_whose_parent_is_missing_is_a_root(self):
        forest = self.forest(p1=None, p2=99, p3=2)
        self.assertEqual({1}, self.subtree(forest, 1))
        self.assertEqual({2, 3}, self.subtree(forest, 2))

    def test_a_provider_that_is_its_own_ancestor_has_a_position(self):
        """A damaged database may have such a provider."""
        forest = self.forest(p1=None, p2=3, p3=2, p4=3)
        self.assertEqual([1, 2, 3, 4], sorted(forest.ids))
        self.assertEqual({1}, self.subtree(forest, 1))
