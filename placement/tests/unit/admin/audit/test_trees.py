"""Wrong roots, missing parents and cycles in the links between providers."""

from hypothesis import example, given
from hypothesis import strategies as st
from oslotest import base

from placement.admin.audit import trees
from placement.admin.audit.trees import Link, WrongRoot
from placement.tests.properties import REPEATABLE

# A parent and a root that do not exist.
GONE = 99


def links(*rows: tuple[int, int | None, int | None]) -> list[Link]:
    """Links of providers, given as (id, parent, root)."""
    ids = {row[0] for row in rows}
    return [Link(id_, parent, root, parent in ids) for id_, parent, root in rows]


def ids(wrong: tuple[WrongRoot, ...]) -> dict[int, int]:
    return {one.id: one.true_root_id for one in wrong}


class JudgeTest(base.BaseTestCase):
    def test_correct_trees(self):
        judged = trees.judge(links((1, None, 1), (2, 1, 1), (3, 2, 1), (4, None, 4)))
        self.assertEqual(trees.Trees((), (), {}), judged)

    def test_a_root_is_NULL(self):
        judged = trees.judge(links((1, None, None), (2, 1, None)))
        expected = (WrongRoot(1, None, None, 1), WrongRoot(2, 1, None, 1))
        self.assertEqual(expected, judged.wrong_roots)

    def test_a_root_is_another_provider(self):
        judged = trees.judge(links((1, None, 1), (2, 1, 2), (3, None, 1), (4, 1, GONE)))
        self.assertEqual({2: 1, 3: 3, 4: 1}, ids(judged.wrong_roots))

    def test_parents_are_before_children(self):
        judged = trees.judge(links((1, 2, 1), (2, 3, 1), (3, 4, 1), (4, None, 4)))
        self.assertEqual([3, 2, 1], [one.id for one in judged.wrong_roots])

    def test_correct_roots_can_be_omitted(self):
        judged = trees.judge([Link(2, 1, 1, True), Link(3, 2, 7, True)])
        self.assertEqual({3: 1}, ids(judged.wrong_roots))

    def test_a_provider_without_its_parent_is_the_root_of_its_children(self):
        judged = trees.judge(links((2, GONE, 1), (3, 2, 1), (4, 2, 2)))
        self.assertEqual((2,), judged.parent_missing)
        self.assertEqual({3: 2}, ids(judged.wrong_roots))

    def test_a_provider_in_a_cycle_or_below_a_cycle_has_no_wrong_root(self):
        judged = trees.judge(links((1, 2, None), (2, 3, 9), (3, 1, 1), (4, 3, None), (5, 5, 5)))
        self.assertEqual({1: 2, 2: 3, 3: 1, 5: 5}, judged.cyclic)
        self.assertEqual((), judged.wrong_roots)

    def test_a_long_chain(self):
        count = 20_000
        chain = links((0, None, 0), *((n, n - 1, 7) for n in range(1, count)))
        for order in (chain, list(reversed(chain))):
            judged = trees.judge(order)
            self.assertEqual(list(range(1, count)), [one.id for one in judged.wrong_roots])
            self.assertEqual({0}, {one.true_root_id for one in judged.wrong_roots})


# Parents and roots of the providers 0 to 7; 8 and 9 do not exist.
_IDS = st.none() | st.integers(0, 9)


class NaiveTest(base.BaseTestCase):
    @REPEATABLE
    @given(st.lists(st.tuples(_IDS, _IDS), max_size=8))
    @example([(1, 0), (0, 0), (1, 0), (9, 0), (3, 0)])
    def test_the_definition(self, rows):
        """Follow the parents of each provider, without a memory of other providers."""
        missing, wrong, cyclic = set(), {}, set()
        for number, (parent, root) in enumerate(rows):
            if parent is not None and parent >= len(rows):
                missing.add(number)
                continue
            path = [number]
            while (above := rows[path[-1]][0]) is not None and above < len(rows):
                if above in path:
                    break
                path.append(above)
            else:
                if root != path[-1]:
                    wrong[number] = path[-1]
                continue
            if above == number:
                cyclic.add(number)
        judged = trees.judge(links(*((n, *row) for n, row in enumerate(rows))))
        self.assertEqual(missing, set(judged.parent_missing))
        self.assertEqual(wrong, ids(judged.wrong_roots))
        self.assertEqual(cyclic, judged.cyclic.keys())


class CorrectionsTest(base.BaseTestCase):
    """What is corrected depends on the rows that the transaction has locked."""

    wrong = (WrongRoot(2, 1, None, 1), WrongRoot(3, 2, None, 1))

    def test_parents_and_children_are_corrected_together(self):
        current = {1: (None, 1), 2: (1, None), 3: (2, None)}
        self.assertEqual({2: 1, 3: 1}, trees.root_corrections(self.wrong, current))

    def test_a_root_without_a_parent(self):
        one = WrongRoot(4, None, 1, 4)
        self.assertEqual({4: 4}, trees.root_corrections([one], {4: (None, 1)}))

    def test_a_provider_that_was_moved_deleted_or_corrected_is_not_changed(self):
        for current in (
            {1: (None, 1), 2: (5, None)},
            {1: (None, 1)},
            {1: (None, 1), 2: (1, 1)},
            {2: (1, None)},
        ):
            with self.subTest(current=current):
                self.assertEqual({}, trees.root_corrections(self.wrong[:1], current))

    def test_the_parent_was_moved_to_another_tree(self):
        current = {1: (7, 7), 2: (1, None), 3: (2, None)}
        self.assertEqual({}, trees.root_corrections(self.wrong, current))
