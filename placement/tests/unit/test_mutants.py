"""The list of mutants is complete enough, and names existing tests."""

import pathlib
import tempfile

from oslotest import base

import placement
from tools import mutants

MUTANT = mutants.Mutant('one.py', 'if a:', 'if b:', (), None)


class ListTest(base.BaseTestCase):
    def test_there_are_many_mutants(self):
        self.assertGreaterEqual(len(set(mutants.mutants())), 60)

    def test_each_mutant_can_be_inserted(self):
        self.assertEqual([], [str(one) for one in mutants.mutants() if mutants.is_stale(one)])

    def test_selection(self):
        files = {'claims/judge.py', 'claims/write.py'}
        selected = list(mutants.select(sorted(files), 'sqlite'))
        self.assertEqual(files, {one.file for one in selected})
        self.assertEqual({None}, {one.engine for one in selected})
        self.assertEqual([*mutants.mutants()], [*mutants.select([''], None)])

    def test_the_tests_exist(self):
        folder = pathlib.Path(placement.__file__).parent / 'tests'
        for name in {name for mutant in mutants.mutants() for name in mutant.tests}:
            module, *rest = name.split('.test_', 1)[1].split('.')
            path = folder.joinpath(*name.split('.test_', 1)[0].split('.'), f'test_{module}.py')
            text = path.read_text()
            for keyword, part in zip(('class', 'def'), rest, strict=False):
                self.assertIn(f'{keyword} {part}(', text, name)


class CopyTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.package = pathlib.Path(folder.name)

    def test_a_missing_file_is_stale(self):
        self.assertTrue(mutants.is_stale(MUTANT, self.package))

    def test_a_text_that_is_not_there_exactly_once_is_stale(self):
        for text, stale in (('if a:', False), ('if a: if a:', True), ('if c:', True)):
            (self.package / 'one.py').write_text(text)
            self.assertIs(stale, mutants.is_stale(MUTANT, self.package), text)
