"""The guide page about the OpenAPI documents, doc/source/user/clients.rst."""

import contextlib
import io
import os
from pathlib import Path
import re
import textwrap

import fixtures
from oslotest import base

import placement
from placement.tests.unit.openapi.documents import content
import write_openapi as command

PAGE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'user' / 'clients.rst'


class GuideTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.page = PAGE.read_text(encoding='utf-8')
        folder = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(os.chdir, Path.cwd())
        os.chdir(folder)

    def test_the_commands_write_documents_and_the_example_prints_the_paths_of_one(self):
        every, one = re.findall(
            r'^    \S+ api-ref/write_openapi\.py (.+)$', self.page, re.MULTILINE
        )
        self.assertEqual(1, len(every.split()))
        command.main(one.split())
        example = re.search(r'example prints.*::\n\n((?:    .+\n|\n)+)', self.page)[1]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(textwrap.dedent(example), {})
        version = one.split()[-1]
        self.assertEqual(list(content(version)['paths']), output.getvalue().split())
