"""The text and the JSON document of an explanation."""

from dataclasses import replace

from oslotest import base

from placement.admin.explain import funnel, model, render

EXPLANATION = model.Explanation(
    query='resources=VCPU:4',
    microversion='1.39',
    candidates=model.Trees(0),
    nested=None,
    conditions=('resources:VCPU',),
    relaxations=(),
    pairs_omitted=False,
    funnel=(model.GroupFunnel('', {'VCPU': 4}, dict.fromkeys(funnel.CHECKS, 2)),),
    roots=model.RootFunnel(3, 3, 0, model.Trees(0)),
    nearest=(model.NearTree('host-7\x1b', 'u', ()),),
)
CUT = model.Trees(0, more=True, cut=True)


class TextTest(base.BaseTestCase):
    def assertText(self, text: str, **changes: object) -> None:
        self.assertIn(text, render.text(replace(EXPLANATION, **changes)))

    def test_numbers_of_trees(self) -> None:
        for trees, text in (
            (model.Trees(0), 'No tree has candidates in microversion 1.39.'),
            (model.Trees(1), '1 tree has candidates in microversion 1.39.'),
            (model.Trees(2), '2 trees have candidates in microversion 1.39.'),
            (model.Trees(1000, more=True), 'More than 1000 trees have candidates'),
            (CUT, 'The search reached the search limit in microversion 1.39.'),
            (replace(CUT, count=3), 'At least 3 trees have candidates'),
        ):
            self.assertText(text, candidates=trees)

    def test_the_newer_microversion(self) -> None:
        self.assertText('2 trees have candidates from microversion 1.29', nested=model.Trees(2))

    def test_without_relaxations(self) -> None:
        self.assertText('There is no condition, and no pair of conditions, without which')
        self.assertText('Pairs of conditions are examined for at most 40', pairs_omitted=True)

    def test_a_cut_search_claims_nothing(self) -> None:
        relaxation = model.Relaxation(('a', 'b'), CUT, {})
        self.assertText('without these conditions:\n  a and b\n', relaxations=(relaxation,))
        document = render.document(replace(EXPLANATION, relaxations=(relaxation,)))
        self.assertEqual([{'without': ['a', 'b'], 'cut': True}], document['relaxations'])

    def test_the_classes_of_several_amounts(self) -> None:
        most = model.MostFree(model.Most(7, 'host-1'), model.Most(5, 'host-2'))
        keys = ('resources:VCPU', 'resources:DISK_GB')
        relaxation = model.Relaxation(keys, model.Trees(1), dict.fromkeys(keys, most))
        self.assertText('VCPU 7 on host-1, DISK_GB 7', relaxations=(relaxation,))

    def test_a_tree_in_which_each_condition_is_satisfied(self) -> None:
        self.assertText(r'host-7\x1b: each condition is satisfied, but not all together')
