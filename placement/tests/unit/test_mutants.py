"""Each mutant of the list can be inserted, and its tests exist."""

import pathlib

from oslotest import base

import placement
from tools import mutants


class ListTest(base.BaseTestCase):
    def test_each_mutant_can_be_inserted(self):
        self.assertGreaterEqual(len(set(mutants.mutants())), 60)
        self.assertEqual([], [str(one) for one in mutants.mutants() if mutants.is_stale(one)])

    def test_the_tests_exist(self):
        folder = pathlib.Path(placement.__file__).parent / 'tests'
        for name in {name for mutant in mutants.mutants() for name in mutant.tests}:
            module, *rest = name.split('.test_', 1)[1].split('.')
            path = folder.joinpath(*name.split('.test_', 1)[0].split('.'), f'test_{module}.py')
            text = path.read_text()
            for keyword, part in zip(('class', 'def'), rest, strict=False):
                self.assertIn(f'{keyword} {part}(', text, name)
