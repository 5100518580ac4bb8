"""Each mistake of an operator is reported in one line that names the remedy."""

import os
from pathlib import Path
import re

from oslotest import base as oslotest

import placement
from placement.tests import servers
from placement.tests.functional.mistakes import base, catalog
from placement.tests.functional.mistakes.programs import MANAGE, SERVICE, STATUS

EXIT_STATUSES = {MANAGE: 1, STATUS: 255, SERVICE: 1}
GUIDE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'troubleshooting.rst'


class ReportTest(base.TestCase):
    def assertReported(self, name: str, mistake: catalog.Mistake, program: str) -> str:
        result = self.make(mistake, program)
        label = f'{name}: {program}: {result}'
        self.assertEqual(EXIT_STATUSES[program], result.status, label)
        # The log of the service is on the standard output.
        output = result.stdout + result.stderr
        self.assertNotIn('Traceback', output, label)
        self.assertNotIn(catalog.PASSWORD, output, label)
        if program != SERVICE:
            self.assertEqual('', result.stdout, label)
        report = self.report(result, program)
        self.assertIsNotNone(base.pattern(mistake.report).fullmatch(report), label)
        return report

    def assertTracebackWithDebug(self, mistake: catalog.Mistake, program: str) -> None:
        result = self.make(mistake, program, debug=True)
        self.assertEqual(EXIT_STATUSES[program], result.status, result)
        self.assertIn('Traceback (most recent call last)', result.stdout + result.stderr)

    def test_every_mistake(self):
        for name, mistake in catalog.MISTAKES.items():
            for program in mistake.programs:
                self.assertReported(name, mistake, program)

    def test_debug_shows_the_traceback(self):
        for name in ('no connection', 'unknown value', 'no directory for SQLite'):
            mistake = catalog.MISTAKES[name]
            for program in mistake.programs:
                self.assertTracebackWithDebug(mistake, program)

    def test_mistakes_with_a_server(self):
        if servers.ADMIN_URL not in os.environ:
            self.skipTest('the test needs a database server')
        admin = servers.admin_url()
        password = str(admin.password)
        urls = (admin.set(password=catalog.PASSWORD), admin.set(database='placement_unknown'))
        texts = [url.render_as_string(hide_password=False) for url in urls]
        for name, mistake in catalog.server_mistakes(*texts).items():
            for program in mistake.programs:
                self.assertNotIn(password, self.assertReported(name, mistake, program))
                self.assertTracebackWithDebug(mistake, program)

    def test_the_remedy_names_the_extra(self):
        for name, extra in (
            ('driver not installed', 'mysql'),
            ('PostgreSQL driver not installed', 'postgresql'),
            ('memcached without its library', 'memcached'),
        ):
            report = self.assertReported(name, catalog.MISTAKES[name], SERVICE)
            self.assertIn(f"pip install 'openstack-placement[{extra}]'", report)

    def test_the_report_names_the_files_and_the_masked_url(self):
        report = self.assertReported('', catalog.MISTAKES['no connection'], MANAGE)
        self.assertRegex(report, r'\[placement_database\] connection .*/placement.conf\)')
        report = self.assertReported('', catalog.MISTAKES['MySQL server unreachable'], STATUS)
        self.assertIn('mysql+pymysql://placement:***@127.0.0.1:', report)

    def test_the_service_logs_the_report(self):
        result = self.make(catalog.MISTAKES['no auth_type'], SERVICE)
        logged = [line for line in result.stdout.splitlines() if ' CRITICAL ' in line]
        self.assertEqual(1, len(logged), result.stdout)
        self.assertTrue(logged[0].endswith(f': {self.report(result, SERVICE)}'), logged[0])


class GuideTest(oslotest.BaseTestCase):
    def test_the_guide_lists_every_report(self):
        section = GUIDE.read_text().partition('\nThe service does not start\n')[2]
        section = section.partition('\n401 Unauthorized\n')[0]
        reports = re.findall(r'\n\* ``((?:(?!``).)*)``\n', section, re.S)
        listed = [' '.join(report.split()) for report in reports]
        mistakes = catalog.MISTAKES | catalog.server_mistakes('', '')
        self.assertEqual(sorted({mistake.report for mistake in mistakes.values()}), sorted(listed))
