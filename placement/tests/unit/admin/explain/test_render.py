"""The text and the JSON document of an explanation."""

from dataclasses import replace

from oslotest import base

from placement.admin import tables
from placement.admin.explain import funnel, model, render

EXPLANATION = model.Explanation(
    query='resources=VCPU:4',
    microversion='1.38',
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
            (model.Trees(0), 'No provider tree has allocation candidates in microversion 1.38.'),
            (model.Trees(1), '1 provider tree has allocation candidates in microversion 1.38.'),
            (model.Trees(2), '2 provider trees have allocation candidates in microversion 1.38.'),
            (
                model.Trees(1000, more=True),
                'More than 1000 provider trees have allocation candidates',
            ),
            (
                CUT,
                'reached the limit [placement] max_candidate_search_steps in microversion 1.38.',
            ),
            (replace(CUT, count=3), 'At least 3 provider trees have allocation candidates'),
        ):
            self.assertText(text, candidates=trees)

    def test_the_newer_microversion(self) -> None:
        self.assertText(
            '2 provider trees have allocation candidates from microversion 1.29',
            nested=model.Trees(2),
        )

    def test_without_relaxations(self) -> None:
        self.assertText('There is no condition, and no pair of conditions, without which')
        self.assertText('There is no single condition without which', pairs_omitted=True)
        self.assertText('for at most 40 conditions; this query has 1.', pairs_omitted=True)

    def test_nothing_is_stated_about_relaxations_if_the_search_was_cut(self) -> None:
        self.assertNotIn('without which', render.text(replace(EXPLANATION, candidates=CUT)))
        cut = model.Relaxation(('a',), CUT, {})
        self.assertText(
            'There is no other single condition', relaxations=(cut,), pairs_omitted=True
        )

    def test_long_lists_are_cut_off(self) -> None:
        cut = tuple(model.Relaxation((f'{n}',), CUT, {}) for n in range(15))
        self.assertText('\n  9\n  and 5 more, which --format json lists\n', relaxations=cut)
        facts = tuple(model.Fact(f'required:T{n}', f'lacks T{n}') for n in range(15))
        tree = model.NearTree('host-7', 'u', facts)
        self.assertText('lacks T9; and 5 more, which --format json lists', nearest=(tree,))

    def test_required_traits_of_the_unsuffixed_group_are_mentioned(self) -> None:
        sentence = 'Required traits of the unsuffixed group are not checked'
        self.assertText(sentence, conditions=('resources:VCPU', 'required:in:A,B'))
        for key in ('required:!A', 'required_1:A', 'root_required:A'):
            text = render.text(replace(EXPLANATION, conditions=('resources:VCPU', key)))
            self.assertNotIn(sentence, text)

    def test_all_lines_fit_a_terminal(self) -> None:
        cut = model.Relaxation(('a' * 99, 'b' * 99), CUT, {})
        found = replace(
            EXPLANATION,
            candidates=CUT,
            nested=CUT,
            conditions=('required:A',),
            pairs_omitted=True,
        )
        for explanation in (found, replace(found, candidates=model.Trees(0), relaxations=(cut,))):
            for line in render.text(explanation).splitlines():
                self.assertLessEqual(len(line), tables.WIDTH, line)

    def test_a_cut_search_claims_nothing(self) -> None:
        relaxation = model.Relaxation(('a', 'b'), CUT, {})
        self.assertText(
            'without these conditions.\nAllocation candidates may exist:\n  a and b\n',
            relaxations=(relaxation,),
        )
        document = render.document(replace(EXPLANATION, relaxations=(relaxation,)))
        self.assertEqual([{'without': ['a', 'b'], 'cut': True}], document['relaxations'])

    def test_the_classes_of_several_amounts(self) -> None:
        most = model.MostFree(model.Most(7, 'host-1'), model.Most(5, 'host-2'))
        keys = ('resources:VCPU', 'resources:DISK_GB')
        relaxation = model.Relaxation(keys, model.Trees(1), dict.fromkeys(keys, most))
        self.assertText('VCPU 7 on host-1, DISK_GB 7', relaxations=(relaxation,))

    def test_a_tree_in_which_each_condition_is_satisfied(self) -> None:
        self.assertText(r'host-7\x1b: each condition is satisfied, but not all together')
