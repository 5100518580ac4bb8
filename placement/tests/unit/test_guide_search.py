"""The search index of the guides with the pages of the API reference."""

import importlib.util
from pathlib import Path

from oslotest import base

import placement

_FILE = Path(placement.__file__).parents[1] / 'doc' / 'guide_search.py'
_SPEC = importlib.util.spec_from_file_location('guide_search', _FILE)
guide_search = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(guide_search)


def index(*names, terms, titles=None, entries=None):
    """Return an index as Sphinx writes it."""
    return {
        'docnames': list(names),
        'filenames': [f'{name}.rst' for name in names],
        'titles': [name.capitalize() for name in names],
        'terms': terms,
        'titleterms': {},
        'alltitles': titles or {},
        'indexentries': entries or {},
    }


class MergeTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.merged = index(
            'index',
            'trees',
            terms={'host': 1, 'tree': [0, 1]},
            titles={'Search': [[0, 'search']]},
            entries={'rbac': [[1, 'index-0', True]]},
        )
        reference = index(
            'index',
            'traits',
            terms={'host': 0, 'tree': [0, 1], 'trait': 1},
            titles={'Search': [[1, None]], 'List traits': [[1, 'list-traits']]},
            entries={'pages': [[0, 'index-0', False]]},
        )
        guide_search.merge(self.merged, reference)

    def test_the_pages_of_the_reference_follow(self):
        folder = '../../../api-ref/build/html'
        expected = ['index', 'trees', f'{folder}/index', f'{folder}/traits']
        self.assertEqual(expected, self.merged['docnames'])
        titles = ['Index', 'Trees', 'Index (API reference)', 'Traits (API reference)']
        self.assertEqual(titles, self.merged['titles'])
        self.assertEqual(4, len(self.merged['filenames']))

    def test_words_of_both(self):
        expected = {'host': [1, 2], 'tree': [0, 1, 2, 3], 'trait': [3]}
        self.assertEqual(expected, self.merged['terms'])

    def test_titles_and_index_entries_of_both(self):
        titles = {'Search': [[0, 'search'], [3, None]], 'List traits': [[3, 'list-traits']]}
        self.assertEqual(titles, self.merged['alltitles'])
        entries = {'rbac': [[1, 'index-0', True]], 'pages': [[2, 'index-0', False]]}
        self.assertEqual(entries, self.merged['indexentries'])
