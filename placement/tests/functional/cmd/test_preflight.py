"""The command placement-status preflight, with good and bad configurations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import json
import pathlib
from types import MappingProxyType
from typing import Any
from unittest import mock

import ddt
import fixtures
import sqlalchemy as sa
import yaml

from placement.admin.preflight import report
from placement.db.sqlalchemy import migration, models
from placement.tests import where
from placement.tests.functional import memcached_server
from placement.tests.functional.cmd import base
from placement.tests.functional.cmd.identity_server import PASSWORD, USER, IdentityServer
from placement.tests.functional.faults.machines import free_port
from placement.tests.functional.programs import Result


@dataclass(frozen=True)
class Verdict:
    """A result in the JSON document."""

    result: str
    detail: str
    remedy: str


Findings = dict[str, list[Verdict]]
# For each check: the result, and a text in the details or in the remedy, of each of its verdicts.
# The lists contain every warning and every failure. The text can be empty.
Expected = Mapping[str, Sequence[str]]

NOAUTH = '[api]\nauth_strategy = noauth2\n'
NOAUTH_WARNING: Expected = {'Authentication Strategy': ['warning Every client ']}
KEYSTONE = f"""
[keystone_authtoken]
www_authenticate_uri = {{url}}
auth_type = password
auth_url = {{url}}
username = {USER}
password = {PASSWORD}
project_name = service
user_domain_id = default
project_domain_id = default
"""
# The options that protect the tokens in memcached.
SIGNED = 'memcache_security_strategy = MAC\nmemcache_secret_key = hush-memcached'
CASES = pathlib.Path(__file__).with_name('preflight.yaml')


class TestCase(base.TestCase):
    """Runs all checks in the process of the test."""

    module = 'placement.cmd.status'

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def preflight(
        self,
        text: str,
        connection: str | sa.URL | None = None,
        variables: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> Findings:
        """Run the checks with a configuration file and return the findings by check."""
        path = self.folder / 'placement.conf'
        if isinstance(connection, sa.URL):
            connection = connection.render_as_string(hide_password=False)
        path.write_text(
            f'[placement_database]\nconnection = {connection or self.database.url}\n{text}'
        )
        done = self.run_command(
            *('--config-file', str(path), 'preflight', '--format', 'json', *arguments),
            connection=False,
            variables=variables,
        )
        self.assertEqual('', done.stderr)
        findings: Findings = {}
        for one in json.loads(done.stdout)['checks']:
            findings.setdefault(one.pop('name'), []).append(Verdict(**one))
        results = {verdict.result for verdicts in findings.values() for verdict in verdicts}
        expected = 2 if 'failure' in results else int('warning' in results)
        self.assertEqual(expected, done.status)
        return findings

    def table(self, *arguments: str) -> Result:
        """Return the table of the checks with the last configuration file."""
        options = ('--config-file', str(self.folder / 'placement.conf'))
        return self.run_command(*options, 'preflight', *arguments, connection=False)

    def assertFound(self, expected: Expected, findings: Findings) -> None:
        """Compare the verdicts of some checks; no other check warns or fails."""
        remarkable = {
            name: verdicts
            for name, verdicts in findings.items()
            if name in expected or {'warning', 'failure'} & {one.result for one in verdicts}
        }
        self.assertEqual(expected.keys(), remarkable.keys(), remarkable)
        for name, listed in expected.items():
            for text, verdict in zip(listed, remarkable[name], strict=True):
                result, _, fragment = text.partition(' ')
                self.assertEqual(result, verdict.result, verdict)
                self.assertIn(fragment, f'{verdict.detail} {verdict.remedy}')

    def check(self, expected: Expected, text: str = '', **more: Any) -> Findings:
        """Run the checks without Keystone."""
        findings = self.preflight(f'{text}\n{NOAUTH}', **more)
        self.assertFound({**NOAUTH_WARNING, **expected}, findings)
        return findings


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ReportTest(TestCase):
    def test_the_table(self):
        """The verdict is first, then what to do; --all lists the other checks, too."""
        findings = self.preflight(NOAUTH)
        counts = Counter(one.result for listed in findings.values() for one in listed)
        verdict = f'1 failure, 1 warning, {counts["ok"]} ok, {counts["skipped"]} skipped'
        others = [result for result in ('ok', 'skipped') for _ in range(counts[result])]
        for arguments, more in (((), []), (('--all',), others)):
            done = self.table(*arguments)
            self.assertEqual(2, done.status, done.stderr)
            first, empty, *lines = done.stdout.splitlines()
            self.assertEqual((verdict, ''), (first, empty))
            self.assertLessEqual(max(map(len, lines)), 100)
            cells = [line.split('|')[2].strip() for line in lines if line.startswith('|')]
            results = ['Result', 'failure', 'warning', *more]
            self.assertEqual(results, [cell for cell in cells if cell])
        self.assertRegex(done.stdout, r'\n\| Schema +\| failure +\| The schema is at ')

    def test_the_checks_cannot_run(self):
        malformed = self.folder / 'malformed.conf'
        malformed.write_text('no assignment\n')
        for arguments, fragment in (
            (('preflight',), 'connection has no value'),
            (('--config-file', '/nonexistent/file', 'preflight'), '/nonexistent/file'),
            (('--config-file', str(malformed), 'preflight'), 'malformed.conf'),
        ):
            done = self.run_command(*arguments, connection=False)
            self.assertEqual((255, ''), (done.status, done.stdout), arguments)
            self.assertIn(fragment, done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)


@ddt.ddt
@where.only_on('sqlite', reason='No SQL statement is executed.')
class CasesTest(TestCase):
    """The configurations in preflight.yaml."""

    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')
        self.server = self.useFixture(IdentityServer(catalog=('placement', 'identity')))
        cache = self.useFixture(memcached_server.Memcached())
        values = {
            'cache': cache.address,
            'closed': str(free_port()),
            'root': self.server.url.removesuffix('/v3'),
        }
        text = CASES.read_text()
        for name, value in values.items():
            text = text.replace(f'<{name}>', value)
        self.cases = yaml.safe_load(text)

    def run_case(
        self,
        section: str,
        expect: Expected,
        options: str = '',
        files: Mapping[str, str] = MappingProxyType({}),
        environment: Mapping[str, str] | None = None,
        missing: str = '',
        url: str | None = None,
        server: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, content in files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(content)
        text = {
            'service': f'{options}\n{NOAUTH}',
            'policies': options,
            'keystone': KEYSTONE.format(url=self.server.url) + options,
            'bare': f'[keystone_authtoken]\n{options}',
        }[section]
        if section == 'service':
            expect = {**NOAUTH_WARNING, **expect}
        elif section == 'policies':
            checks = {name: report.CHECKS[name] for name in expect}
            self.enterContext(mock.patch.object(report, 'CHECKS', checks))
        # Python does not import a module that is None here.
        libraries = {missing: None} if missing else {}
        with (
            mock.patch.dict('sys.modules', libraries),
            mock.patch.dict(vars(self.server), server),
        ):
            findings = self.preflight(text, url, environment)
        self.assertFound(expect, findings)
        self.assertNotIn('hush', str(findings))

    @ddt.data('service', 'policies', 'keystone', 'bare')
    def test_cases(self, section):
        for case in self.cases[section]:
            with self.subTest(case):
                self.run_case(section, **case)

    def test_a_good_deployment(self):
        endpoint = self.server.endpoint
        findings = self.preflight(KEYSTONE.format(url=self.server.url))
        self.assertFound(
            {
                'Keystone Options': ['ok '],
                'Keystone Endpoints': ['ok ', 'ok '],
                'Service Credentials': ['ok User placement, project service, roles: service.'],
                'Identity Endpoint': [f'ok {endpoint} responds.'],
                'Service Catalog': [f'ok respond: internal {endpoint}; public {endpoint}.'],
            },
            findings,
        )
        skipped = sum(listed[0].result == 'skipped' for listed in findings.values())
        listed = sum(map(len, findings.values()))
        self.assertEqual(f'{listed - skipped} ok, {skipped} skipped\n', self.table().stdout)

    def test_other_hosts(self):
        """Every host is regarded as another one; the connections are not encrypted."""
        cache = self.useFixture(memcached_server.Memcached())
        plain = ['warning without TLS']
        expected = {'Keystone Endpoints': plain * 2, 'Identity Endpoint': plain}
        with mock.patch('placement.admin.preflight.database.is_local', return_value=False):
            self.run_case(
                'keystone',
                {**expected, 'Token Cache': plain},
                f'memcached_servers = {cache.address}\n{SIGNED}',
            )

    def test_memcached_with_tls(self):
        """A value is written and read with the configured connection."""
        cache = self.useFixture(memcached_server.Memcached(tls=True))
        address = f'memcached_servers = {cache.address}\n{SIGNED}'
        options = '\n'.join(f'{name} = {value}' for name, value in cache.options().items())
        self.run_case('keystone', {'Token Cache': ['ok ']}, f'{address}\n{options}')
        self.run_case('keystone', {'Token Cache': ['warning ']}, address)


class DataTest(TestCase):
    def test_revisions(self):
        """The schema is empty, older, newer, incomplete, or without a revision."""
        data = ('Missing Root Provider IDs', 'Incomplete Consumers')
        no_data = {key: ['skipped '] for key in data}
        lacking = 'failure these tables do not exist: users. Check that'
        none, no_users = 'DROP TABLE alembic_version', 'DROP TABLE users'
        newer = "UPDATE alembic_version SET version_num = 'feedbeef'"
        for upgraded, statements, expected in (
            ('', (), {'Schema Revision': ['failure Run `placement-manage db sync`.'], **no_data}),
            ('422ece571366', (), {'Schema Revision': ['failure 422ece571366; this release']}),
            ('head', (newer,), {'Schema Revision': ['warning newer release']}),
            ('head', (no_users,), {'Schema Revision': [lacking]}),
            ('head', (no_users, none), {'Schema Revision': [lacking]}),
            ('head', (none,), {'Schema Revision': ['warning db stamp head']}),
        ):
            with self.subTest(upgraded, statements=statements):
                with self.engine.begin() as conn:
                    models.metadata.drop_all(conn)
                    conn.exec_driver_sql('DROP TABLE IF EXISTS alembic_version')
                if upgraded:
                    migration.upgrade(upgraded)
                with self.engine.begin() as conn:
                    for statement in statements:
                        conn.exec_driver_sql(statement)
                self.check(expected)

    def test_the_service_can_upgrade_the_schema(self):
        migration.upgrade('422ece571366')
        with_sync = self.preflight(f'sync_on_startup = true\n{NOAUTH}')
        self.assertFound({**NOAUTH_WARNING, 'Schema Revision': ['ok sync_on_startup']}, with_sync)

    def test_data_of_an_older_release(self):
        migration.upgrade('b4ed3a175331')
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.resource_providers).values(uuid='rp', name='rp'))
            conn.execute(
                sa.insert(models.allocations).values(
                    resource_provider_id=1, consumer_id='c', resource_class_id=0, used=1
                )
            )
        self.check(
            {
                'Schema Revision': ['failure '],
                'Missing Root Provider IDs': ['failure online_data_migrations'],
                'Incomplete Consumers': ['warning online_data_migrations'],
            }
        )
