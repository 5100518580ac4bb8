"""Text of clients in log lines."""

import shlex

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement import exception
from placement.http import quoted, request
from placement.tests.properties import REPEATABLE

# The characters that a WSGI server can put into the environment.
LATIN_1 = st.text(st.characters(max_codepoint=255))


class QuotedTest(base.BaseTestCase):
    @REPEATABLE
    @given(LATIN_1)
    def test_the_text_is_safe(self, text):
        encoded = quoted(text)
        self.assertTrue(encoded.isascii() and encoded.isprintable(), encoded)
        self.assertNotIn(' ', encoded)
        self.assertEqual([encoded], shlex.split(f"'{encoded}'"))
        self.assertEqual(encoded, quoted(encoded))

    @REPEATABLE
    @given(LATIN_1)
    def test_a_query_has_the_same_parameters(self, text):
        self.assertEqual(_items(text), _items(quoted(text)))


def _items(query):
    try:
        return request.query_items({'QUERY_STRING': query})
    except exception.InvalidQuery as error:
        return str(error)
