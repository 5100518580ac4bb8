"""The command placement-status preflight, with good and bad configurations."""

from collections.abc import Sequence
import json
import os
import pathlib
import socket
import subprocess
import sys
from unittest import mock

import fixtures
from oslo_config import cfg
import sqlalchemy as sa

from placement import conf
from placement.admin.preflight import encryption, runner
from placement.admin.preflight.checks import CHECKS
from placement.admin.preflight.model import Check, Verdict
from placement.cmd import status
from placement.db.sqlalchemy import migration, models
from placement.tests import servers, where
from placement.tests.functional import memcached_server
from placement.tests.functional.cmd import base
from placement.tests.functional.cmd.identity_server import PASSWORD, USER, IdentityServer

Findings = dict[str, list[Verdict]]

NOAUTH = '[api]\nauth_strategy = noauth2\n'
KEYSTONE = """
[keystone_authtoken]
www_authenticate_uri = {url}
auth_url = {url}
auth_type = password
username = {user}
password = {password}
project_name = service
user_domain_id = default
project_domain_id = default
{more}
"""

# The options that protect the tokens in memcached.
SIGNED = 'memcache_security_strategy = MAC\nmemcache_secret_key = hush-memcached'


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class TestCase(base.TestCase):
    """Runs all checks in the process of the test; `execute` runs the command."""

    module = 'placement.cmd.status'

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def write(self, text: str, connection: str | None = None) -> str:
        """Write a configuration file and return its path."""
        path = self.folder / 'placement.conf'
        path.write_text(
            f'[placement_database]\nconnection = {connection or self.database.url}\n{text}'
        )
        return str(path)

    def execute(self, text: str, *arguments: str) -> subprocess.CompletedProcess:
        """Execute the command with a configuration file."""
        path = self.write(text)
        return self.run_command('--config-file', path, 'preflight', *arguments, connection=False)

    def preflight(
        self, text: str, connection: str | None = None, checks: Sequence[Check] = CHECKS
    ) -> Findings:
        """Run checks with a configuration file and return the findings by name."""
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.register_cli_opt(cfg.SubCommandOpt('command', handler=status._add_commands))
        path = self.write(text, connection)
        config(['--config-file', path, 'preflight'], project='placement')
        findings: Findings = {check.name: [] for check in checks}
        for finding in runner.run(config, checks):
            findings[finding.name].append(finding.verdict)
        return findings

    def assertResults(self, expected: dict[str, str], findings: Findings) -> None:
        """Compare the results of some checks; every other check is neither warning nor failure."""
        actual = {
            name: ' '.join(verdict.result for verdict in verdicts)
            for name, verdicts in findings.items()
        }
        remarkable = {
            name: results
            for name, results in actual.items()
            if name in expected or {'warning', 'failure'} & set(results.split())
        }
        self.assertEqual(expected, remarkable, findings)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ReportTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')

    def test_json(self):
        done = self.execute(NOAUTH, '--format', 'json')
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        checks = json.loads(done.stdout)['checks']
        self.assertEqual([check.name for check in CHECKS], [check['name'] for check in checks])
        remarkable = [check for check in checks if check['result'] in ('warning', 'failure')]
        self.assertEqual(['Authentication Strategy'], [check['name'] for check in remarkable])

    def test_table(self):
        done = self.execute(NOAUTH + '[api]\nauth_strategie = noauth2\n[placement]\nx = y\n')
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r'\n\| Authentication Strategy +\| warning +\| Every client ')
        for check in CHECKS:
            self.assertIn(f'\n| {check.name.split()[0]} ', done.stdout)

    def test_a_failure(self):
        done = self.execute(f'max_pool_size = many\n{NOAUTH}')
        self.assertEqual((2, ''), (done.returncode, done.stderr))
        self.assertIn("'many'", done.stdout)
        self.assertIn('| Schema Revision ', done.stdout)

    def test_a_good_deployment(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        done = self.execute(
            KEYSTONE.format(url=server.url, user=USER, password=PASSWORD, more=''),
            *('--format', 'json'),
        )
        self.assertEqual((0, ''), (done.returncode, done.stderr), done.stdout)
        details = {item['name']: item['detail'] for item in json.loads(done.stdout)['checks']}
        self.assertEqual(
            'User placement, project service, roles: service.', details['Service Credentials']
        )
        self.assertEqual(
            f'Endpoints of the service, which respond: internal {server.endpoint}; '
            f'public {server.endpoint}.',
            details['Service Catalog'],
        )


@where.only_on('sqlite', reason='No SQL statement is executed.')
class UsageTest(TestCase):
    def test_the_check_cannot_run(self):
        for arguments, fragment in (
            (('preflight',), 'connection has no value'),
            (('--config-file', '/nonexistent/file', 'preflight'), '/nonexistent/file'),
        ):
            done = self.run_command(*arguments, connection=False)
            self.assertEqual((255, ''), (done.returncode, done.stdout), arguments)
            self.assertIn(fragment, done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_a_malformed_configuration_file(self):
        done = self.execute('no assignment\n')
        self.assertEqual((255, ''), (done.returncode, done.stdout))
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_usage(self):
        for arguments in (('preflights',), ('preflight', '--format', 'xml'), ('preflight', 'x')):
            done = self.run_command(*arguments)
            self.assertEqual((2, ''), (done.returncode, done.stdout), arguments)
            self.assertIn('usage', done.stderr)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ConfigurationTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')

    def test_urls(self):
        """The checks find these mistakes before they connect."""
        for rest, name, detail in (
            ('', 'Database Driver', '[placement_database] connection names no database'),
            ('/placement?ssl_ca=/no/ca', 'Database Connection', 'The file /no/ca (ssl_ca in '),
        ):
            url = f'mysql+pymysql://me:hush@127.0.0.1:{unused_port()}{rest}'
            checks = [check for check in CHECKS if check.name.startswith('Database ')]
            (verdict,) = self.preflight(NOAUTH, url, checks)[name]
            self.assertEqual('failure', verdict.result)
            self.assertIn(detail, verdict.detail)

    def test_invalid_names_and_values(self):
        findings = self.preflight(
            'max_pool_size = many\nconection_recycle_time = 1\n[placment]\n'
            '[DEFAULT]\ndebug = true\nauth_strategy = noauth2\n'
            '[oslo_policy]\npolicy_file = missing.yaml\n'
        )
        self.assertResults(
            {
                'Option Names': 'warning warning',
                'Deprecated Options': 'warning',
                'Option Values': 'failure',
                'Debug Logging': 'warning',
                'Authentication Strategy': 'warning',
                'Policy Files': 'failure',
                'Policy Rules': 'skipped',
            }
            | self.limits(),
            findings,
        )
        self.assertIn("'many'", findings['Option Values'][0].detail)

    def limits(self) -> dict[str, str]:
        """The check that needs the invalid value; SQLite has no such limits."""
        return {'Connection Limits': 'failure'} if servers.ADMIN_URL in os.environ else {}

    def test_health_checks(self):
        findings = self.preflight(NOAUTH)
        self.assertEqual('Backends: placement_database.', findings['Health Checks'][0].detail)
        findings = self.preflight(f'{NOAUTH}[healthcheck]\nbackends = disable_by_file,database\n')
        (verdict,) = findings['Health Checks']
        self.assertEqual('failure', verdict.result)
        self.assertIn('unknown names: database. ', verdict.detail)

    def test_invalid_secrets_are_not_displayed(self):
        findings = self.preflight(NOAUTH, connection='mysql+pymysql://me:a@hush:b@x:c/p')
        self.assertEqual('failure', findings['Database Driver'][0].result)
        self.assertEqual('skipped', findings['Database Connection'][0].result)
        self.assertNotIn('hush', str(findings))

    def test_drivers(self):
        for url, fragment in (
            ('oracle://me:hush@db/p', 'does not support'),
            ('mysql+nothing://me:hush@db/p', 'mysql+nothing'),
        ):
            findings = self.preflight(NOAUTH, connection=url)
            self.assertIn(fragment, findings['Database Driver'][0].detail)
            self.assertNotIn('hush', str(findings))

    def test_policy(self):
        (self.folder / 'policy.json').write_text('{"placement:trait:list": "role:admin"}')
        findings = self.preflight(f'{NOAUTH}[oslo_policy]\npolicy_file = policy.json\n')
        self.assertResults(
            {
                'Authentication Strategy': 'warning',
                'Policy Rules': 'warning',
                'Policy File JSON to YAML Migration': 'failure',
            },
            findings,
        )


@where.only_on('sqlite', reason='No SQL statement is executed.')
class IdentityTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')

    def check(
        self, expected: dict[str, str], url: str, user: str = USER, more: str = ''
    ) -> Findings:
        text = KEYSTONE.format(url=url, user=user, password=PASSWORD, more=more)
        findings = self.preflight(text)
        self.assertResults(expected, findings)
        self.assertNotIn(PASSWORD, str(findings))
        return findings

    def test_an_unreachable_server(self):
        findings = self.check(
            {
                'Keystone Endpoints': 'failure failure',
                'Service Credentials': 'failure',
                'Service Catalog': 'skipped',
            },
            f'http://127.0.0.1:{unused_port()}/v3',
        )
        self.assertIn('Connection refused', findings['Keystone Endpoints'][0].detail)

    def test_wrong_credentials(self):
        server = self.useFixture(IdentityServer())
        findings = self.check(
            {'Service Credentials': 'failure', 'Service Catalog': 'skipped'}, server.url, 'nobody'
        )
        self.assertIn('Authenticate first.', findings['Service Credentials'][0].detail)

    def test_a_user_without_the_role_and_a_catalog_without_the_service(self):
        server = self.useFixture(IdentityServer(roles=('member',), catalog=('identity',)))
        self.check({'Service Credentials': 'warning', 'Service Catalog': 'warning'}, server.url)

    def test_a_url_of_another_service(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        other = server.url.replace('/v3', '/other')
        self.check(
            {'Keystone Endpoints': 'warning ok'},
            server.url,
            more=f'[keystone_authtoken]\nwww_authenticate_uri = {other}',
        )

    def test_options(self):
        findings = self.preflight('[keystone_authtoken]\nauth_type = pasword\n')
        self.assertResults(
            {
                'Keystone Options': 'failure warning',
                'Keystone Endpoints': 'skipped',
                'Service Credentials': 'skipped',
                'Service Catalog': 'skipped',
                'Token Cache': 'skipped',
            },
            findings,
        )

    def test_a_file_that_cannot_be_read(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        findings = self.check(
            {
                'Keystone Options': 'failure',
                'Keystone Endpoints': 'skipped',
                'Service Credentials': 'skipped',
                'Service Catalog': 'skipped',
                'Token Cache': 'skipped',
            },
            server.url,
            more='[keystone_authtoken]\ncafile = /no/ca\n',
        )
        (verdict,) = findings['Keystone Options']
        self.assertIn('The file /no/ca ([keystone_authtoken] cafile)', verdict.detail)

    def test_an_auth_plugin_that_does_not_describe_its_user(self):
        findings = self.preflight('[keystone_authtoken]\nauth_type = none\n')
        self.assertResults(
            {
                'Keystone Options': 'warning',
                'Service Credentials': 'ok',
                'Service Catalog': 'skipped',
            },
            findings,
        )

    def test_the_endpoints_of_the_service(self):
        server = self.useFixture(IdentityServer(catalog=('placement',), interfaces=('public',)))
        one = 'region_name = one'
        for region, endpoint, more, results, fragments in (
            ('one', server.endpoint, '', 'warning', ['no internal endpoint']),
            ('one', server.endpoint, one, 'warning', ['no internal endpoint']),
            ('two', server.endpoint, one, 'warning', ['placement in the region one.']),
            (
                'one',
                f'{server.endpoint}/other',
                one,
                'warning warning',
                ['status code 404', 'no internal endpoint'],
            ),
            (
                'one',
                f'http://127.0.0.1:{unused_port()}',
                one,
                'warning warning',
                ['Connection refused', 'no internal endpoint'],
            ),
        ):
            server.region, server.endpoint = region, endpoint
            findings = self.check({'Service Catalog': results}, server.url, more=more)
            for verdict, fragment in zip(findings['Service Catalog'], fragments, strict=True):
                self.assertIn(fragment, verdict.detail)

    def test_endpoints_without_tls(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        with mock.patch.object(encryption, 'is_plain_url', return_value=True):
            findings = self.check({'Keystone Endpoints': 'warning warning'}, server.url)
        self.assertIn('without TLS', findings['Keystone Endpoints'][0].detail)

    def test_an_unverified_certificate(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        self.check({'Keystone Options': 'warning'}, server.url, more='insecure = true')

    def test_memcached(self):
        address = self.useFixture(memcached_server.Memcached()).address
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        servers = f'memcached_servers = {address},127.0.0.1:{unused_port()}'
        findings = self.check(
            {'Token Cache': 'ok warning'}, server.url, more=f'{servers}\n{SIGNED}'
        )
        self.assertIn('Connection refused', findings['Token Cache'][1].detail)
        findings = self.check({'Token Cache': 'failure ok warning'}, server.url, more=servers)
        remedy = findings['Token Cache'][0].remedy
        self.assertIn('Remove [keystone_authtoken] memcached_servers', remedy)
        with mock.patch.object(encryption, 'is_local', return_value=False):
            findings = self.preflight(
                KEYSTONE.format(
                    url=server.url, user=USER, password=PASSWORD, more=f'{servers}\n{SIGNED}'
                )
            )
        self.assertIn('without TLS', findings['Token Cache'][0].detail)

    def test_memcached_with_tls_and_sasl(self):
        """A value is written and read with the configured connection."""
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        for kinds in ({'tls': True}, {'sasl': True}):
            cache = self.useFixture(memcached_server.Memcached(**kinds))
            address = f'memcached_servers = {cache.address}\n{SIGNED}'
            options = '\n'.join(f'{name} = {value}' for name, value in cache.options().items())
            self.check({'Token Cache': 'ok'}, server.url, more=f'{address}\n{options}')
            self.check({'Token Cache': 'warning'}, server.url, more=address)
        wrong = options.replace(memcached_server.PASSWORD, 'hush-wrong')
        findings = self.check({'Token Cache': 'warning'}, server.url, more=f'{address}\n{wrong}')
        self.assertIn('Auth failure', findings['Token Cache'][0].detail)
        self.assertNotIn('hush', str(findings))

    def test_memcached_that_is_not_used(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        servers = f'memcached_servers = 127.0.0.1:{unused_port()}'
        for more in ('cache = swift.cache', 'token_cache_time = 0'):
            self.check({'Token Cache': 'ok'}, server.url, more=f'{servers}\n{more}')

    def test_memcached_without_the_library_for_encryption(self):
        server = self.useFixture(IdentityServer(catalog=('placement',)))
        encrypted = SIGNED.replace('MAC', 'ENCRYPT')
        more = f'memcached_servers = 127.0.0.1:{unused_port()}\n{encrypted}'
        # Python does not import a module that is None here.
        with mock.patch.dict(sys.modules, {'cryptography': None}):
            findings = self.check({'Token Cache': 'warning'}, server.url, more=more)
        remedy = findings['Token Cache'][0].remedy
        self.assertIn("Run `pip install 'openstack-placement[memcached]'`", remedy)


class DataTest(TestCase):
    def test_an_empty_database(self):
        with self.engine.connect():
            pass  # creates the file of SQLite
        findings = self.preflight(NOAUTH)
        self.assertResults(
            {
                'Authentication Strategy': 'warning',
                'Schema Revision': 'failure',
                'Missing Root Provider IDs': 'skipped',
                'Incomplete Consumers': 'skipped',
            },
            findings,
        )
        self.assertEqual('Run `placement-manage db sync`.', findings['Schema Revision'][0].remedy)

        findings = self.preflight(f'sync_on_startup = true\n{NOAUTH}')
        self.assertIn('sync_on_startup', findings['Schema Revision'][0].detail)
        self.assertEqual('ok', findings['Schema Revision'][0].result)

    def test_data_of_an_older_release(self):
        migration.upgrade('b4ed3a175331')
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.resource_providers).values(uuid='rp', name='rp'))
            conn.execute(
                sa.insert(models.allocations).values(
                    resource_provider_id=1, consumer_id='c', resource_class_id=0, used=1
                )
            )
        findings = self.preflight(NOAUTH)
        self.assertResults(
            {
                'Authentication Strategy': 'warning',
                'Schema Revision': 'failure',
                'Missing Root Provider IDs': 'failure',
                'Incomplete Consumers': 'warning',
            },
            findings,
        )
        self.assertIn('online_data_migrations', findings['Incomplete Consumers'][0].remedy)

    def test_an_unknown_revision(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.exec_driver_sql("UPDATE alembic_version SET version_num = 'feedbeef'")
        findings = self.preflight(NOAUTH)
        self.assertResults(
            {'Authentication Strategy': 'warning', 'Schema Revision': 'warning'}, findings
        )
