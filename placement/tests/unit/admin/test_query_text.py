"""Queries and microversions on the command line."""

from oslotest import base

from placement import microversion
from placement.admin import query_text
from placement.admin.failure import CannotProceedError
from placement.candidates import request
from placement.microversion import Version

QUERY = 'resources=VCPU:4,MEMORY_MB:8192&required=HW_CPU_X86_AVX2'
ENCODED = 'resources=VCPU%3A4%2CMEMORY_MB%3A8192&required=HW_CPU_X86_AVX2'
LATEST = microversion.MAX_VERSION


class FormsTest(base.BaseTestCase):
    """A query is found in each form in which logs contain it."""

    def test_all_forms_are_the_same_query(self):
        expected = query_text.parse(QUERY, LATEST)
        self.assertEqual(
            ((('VCPU', 4), ('MEMORY_MB', 8192)),), tuple(g.amounts for g in expected.groups)
        )
        for query in (QUERY, ENCODED):
            for text in (
                query,
                f'?{query}',
                f' {query}\n',
                f'/allocation_candidates?{query}',
                f'allocation_candidates?{query}',
                f'/placement/allocation_candidates?{query}',
                f'http://controller/placement/allocation_candidates?{query}',
                f'https://[::1]:8778/allocation_candidates?{query}#top',
            ):
                with self.subTest(text):
                    self.assertEqual(expected, query_text.parse(text, LATEST))

    def test_a_question_mark_in_a_value_begins_no_query(self):
        self.assertEqual(
            [('resources', 'VCPU:4'), ('required', '?A=B')],
            query_text.pairs('resources=VCPU:4&required=?A=B'),
        )

    def test_a_path_without_a_query(self):
        for text in ('/allocation_candidates', 'http://controller/allocation_candidates', '/?', ''):
            self.assertEqual([], query_text.pairs(text), text)

    def test_text_that_is_not_percent_encoded(self):
        self.assertEqual([('a', '\u00fc \u0105')], query_text.pairs('a=\u00fc+\u0105'))
        self.assertEqual([('a', '1'), ('b', '')], query_text.pairs('a=1;b'))


class RefusalTest(base.BaseTestCase):
    """A query that the API refuses is refused with the same sentence."""

    def refused(self, text: str, version: Version = LATEST) -> str:
        error = self.assertRaises(CannotProceedError, query_text.parse, text, version)
        return str(error)

    def test_the_sentence_is_that_of_the_api(self):
        pairs = [('resources', 'VCPU:many')]
        error = self.assertRaises(Exception, request.parse, pairs, LATEST)
        self.assertEqual(str(error), self.refused('resources=VCPU:many'))

    def test_the_microversion_decides(self):
        query_text.parse('resources=VCPU:1&limit=5', Version(1, 16))
        self.assertIn('limit', self.refused('resources=VCPU:1&limit=5', Version(1, 15)))

    def test_no_query(self):
        self.assertIn('request group', self.refused(''))
        self.assertIn("'resources' is required", self.refused('', Version(1, 10)))

    def test_bytes_that_are_not_utf_8(self):
        # Python passes the byte 0xff of a command line as this surrogate.
        for text in ('resources=%ff', 'resources=\udcff', 'resources=\ud800'):
            self.assertIn('not valid UTF-8', self.refused(text))

    def test_nul(self):
        self.assertIn('NUL', self.refused('resources=%00'))

    def test_control_characters_are_escaped(self):
        self.assertIn("'VCPU:\\x1b'", self.refused('resources=VCPU:%1b'))


class VersionTest(base.BaseTestCase):
    def test_versions(self):
        self.assertEqual(Version(1, 10), query_text.version('1.10'))
        self.assertEqual(LATEST, query_text.version('latest'))

    def test_refused(self):
        for text in ('1.9', '1.0', '1.99', '2.0', 'x', '', '1'):
            error = self.assertRaises(CannotProceedError, query_text.version, text)
            self.assertIn(f"'{text}'", str(error))
