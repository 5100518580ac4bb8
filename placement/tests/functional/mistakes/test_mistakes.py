"""Each mistake of an operator is reported in one line that names the remedy."""

from pathlib import Path
import re
from typing import Any

import certifi
from oslotest import base as oslotest
import sqlalchemy as sa

import placement
from placement.tests import servers, tls_guide, where
from placement.tests.functional.mistakes import base, catalog
from placement.tests.functional.programs import MANAGE, SERVICE, STATUS

EXIT_STATUSES = {MANAGE: 1, STATUS: 255, SERVICE: 1}
GUIDE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'troubleshooting.rst'


class TestCase(base.TestCase):
    def assertReported(self, name: str, mistake: catalog.Mistake, program: str) -> str:
        result = self.make(mistake, program)
        label = f'{name}: {program}: {result}'
        self.assertEqual(EXIT_STATUSES[program], result.status, label)
        # The log of the service is on the standard output.
        output = result.stdout + result.stderr
        self.assertNotIn('Traceback', output, label)
        for secret in mistake.secrets:
            self.assertNotIn(secret, output, label)
        if program != SERVICE:
            self.assertEqual('', result.stdout, label)
        report = self.report(result, program)
        self.assertIsNotNone(base.pattern(mistake.report).fullmatch(report), label)
        return report

    def assertTracebackWithDebug(self, mistake: catalog.Mistake, program: str) -> None:
        result = self.make(mistake, program, debug=True)
        self.assertEqual(EXIT_STATUSES[program], result.status, result)
        self.assertIn('Traceback (most recent call last)', result.stdout + result.stderr)


@where.only_on('sqlite', reason='These mistakes need no server.')
class ReportTest(TestCase):
    def test_every_mistake(self):
        for name, mistake in catalog.MISTAKES.items():
            for program in mistake.programs:
                self.assertReported(name, mistake, program)

    def test_debug_shows_the_traceback(self):
        for name in ('no connection', 'unknown value', 'no directory for SQLite'):
            mistake = catalog.MISTAKES[name]
            for program in mistake.programs:
                self.assertTracebackWithDebug(mistake, program)

    def assertNothingPrinted(self, mistake: catalog.Mistake, program: str, **more: Any) -> None:
        """Execute a program that fails, and check that it prints none of the secrets."""
        result = self.make(mistake, program, **more)
        self.assertNotEqual(0, result.status, result)
        output = result.stdout + result.stderr
        self.assertNotEqual('', output)
        for secret in mistake.secrets:
            self.assertNotIn(secret, output, result)

    def test_no_command_prints_a_part_of_a_password(self):
        names = [
            name
            for name in catalog.MISTAKES
            if name.startswith('password ') and name.endswith(' connection')
        ]
        self.assertGreater(len(names), 4)
        # The command and the password alternate, because a run takes a tenth of a second.
        for number, (program, line) in enumerate(catalog.COMMAND_LINES * 2):
            mistake = catalog.MISTAKES[names[number % len(names)]]
            self.assertNothingPrinted(mistake, program, command=line.split())

    def test_the_list_of_commands_is_complete(self):
        for program, group in ((MANAGE, 'db'), (STATUS, 'upgrade')):
            actions = [f'{group} {action}' for action in self.commands(program, group)]
            printed = self.commands(program)
            self.assertEqual(group, printed[0])
            listed = [line for name, line in catalog.COMMAND_LINES if name == program]
            for name, line in zip([*actions, *printed[1:]], listed, strict=True):
                self.assertTrue(line.startswith(name), line)

    def commands(self, *words: str) -> list[str]:
        """Return the names in the help of a program, or of a group of its commands."""
        program, *group = words
        mistake = catalog.MISTAKES['no connection']
        help_ = self.make(mistake, program, command=[*group, '--help'])
        return re.findall(r'^ {2,4}([a-z][\w-]*)', help_.stdout, re.MULTILINE)

    def test_debug_and_preflight_print_no_part_of_a_password(self):
        for mistake in catalog.MISTAKES.values():
            if mistake.secrets == catalog.PARTS:
                self.assertNothingPrinted(mistake, mistake.programs[-1], debug=True)
                self.assertNothingPrinted(mistake, STATUS, command=['preflight'])

    def test_the_remedy_names_the_extra(self):
        for name, extra in (
            ('MySQLdb not installed', 'mysqlclient'),
            ('pymysql not installed', 'mysql'),
            ('psycopg not installed', 'postgresql'),
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


@where.not_on('sqlite', reason='These mistakes need a server.')
class ServerTest(TestCase):
    def test_mistakes_with_a_server(self):
        admin = servers.admin_url()
        password = str(admin.password)
        urls = (
            admin.set(password=catalog.PASSWORD),
            admin.set(database='placement_unknown'),
            # No public CA signs a certificate of the server of a test run.
            admin.set(query=tls_guide.verification(admin.get_driver_name(), certifi.where())),
        )
        texts = [url.render_as_string(hide_password=False) for url in urls]
        texts += [self.limited_account(), self.unprivileged_account()]
        for name, mistake in catalog.server_mistakes(*texts).items():
            for program in mistake.programs:
                report = self.assertReported(name, mistake, program)
                self.assertNotIn(password, report)
                self.assertTracebackWithDebug(mistake, program)
                # The remedy contains the statement that prints a limit.
                for statement in re.findall(r'\(`([^`]+)` prints it\)', report):
                    with sa.create_engine(admin, poolclass=sa.NullPool).connect() as conn:
                        row = conn.exec_driver_sql(statement).first()
                    self.assertRegex(str(row[-1]), r'^-?\d+$', statement)

    def limited_account(self) -> str:
        """Return the URL of an account that cannot open another connection."""
        url = servers.create_account(sa.make_url(servers.create()), ())
        admin = servers.admin_url()
        if admin.get_backend_name() == 'mysql':
            account = f"'{url.username}'@'127.0.0.1'"
            grant = f'GRANT SELECT ON {url.database}.* TO {account}'
            servers.execute(admin, grant, f'ALTER USER {account} WITH MAX_USER_CONNECTIONS 1')
            connection = sa.create_engine(url, poolclass=sa.NullPool).connect()
            self.addCleanup(connection.close)
        else:
            servers.execute(admin, f'ALTER ROLE {url.username} CONNECTION LIMIT 0')
        return url.render_as_string(hide_password=False)

    def unprivileged_account(self) -> str:
        """Return the URL of an account that cannot create tables in an empty database."""
        privileges = ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
        url = servers.create_account(sa.make_url(servers.create()), privileges)
        return url.render_as_string(hide_password=False)


@where.only_on('sqlite', reason='These mistakes need no server.')
class GuideTest(oslotest.BaseTestCase):
    def test_the_guide_lists_every_report(self):
        section = GUIDE.read_text().partition('\nThe service does not start\n')[2]
        section = section.partition('\n401 Unauthorized\n')[0]
        reports = re.findall(r'\n\* ``((?:(?!``).)*)``\n', section, re.S)
        listed = [' '.join(report.split()) for report in reports]
        mistakes = catalog.MISTAKES | catalog.server_mistakes('', '', '', '', '')
        self.assertEqual(sorted({mistake.report for mistake in mistakes.values()}), sorted(listed))
