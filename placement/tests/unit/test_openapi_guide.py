"""The guide page about the OpenAPI documents, doc/source/user/openapi.rst."""

import contextlib
import io
from pathlib import Path
import re
import textwrap

from oslotest import base

import placement
from placement import handler, microversion

PAGE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'user' / 'openapi.rst'


class GuideTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.page = PAGE.read_text(encoding='utf-8')

    def test_the_example_prints_the_paths_of_a_microversion(self):
        example = re.search(r'example.*::\n\n((?:    .+\n|\n)+)', self.page)[1]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(textwrap.dedent(example), {})
        expected = set(handler.ROUTE_DECLARATIONS) - {''}  # the same as '/'
        self.assertEqual(expected, set(output.getvalue().split()))

    def test_the_page_names_the_first_and_the_last_document(self):
        oldest, *_, newest = microversion.VERSIONS
        names = re.search(r'^``(.+)`` to ``(.+)``$', self.page, re.MULTILINE).groups()
        self.assertEqual((f'placement-{oldest}.yaml', f'placement-{newest}.yaml'), names)
