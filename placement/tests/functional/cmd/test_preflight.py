"""The command placement-status preflight, with good and bad configurations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import json
import pathlib
from typing import Any
from unittest import mock

import fixtures
import sqlalchemy as sa

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
# The checks that need the check of the options of Keystone.
AFTER_OPTIONS = (
    *('Keystone Endpoints', 'Service Credentials', 'Identity Endpoint', 'Service Catalog'),
    'Token Cache',
)
# The types of the services in the catalog.
BOTH = ('placement', 'identity')
# The options that protect the tokens in memcached.
SIGNED = 'memcache_security_strategy = MAC\nmemcache_secret_key = hush-memcached'


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
        self.assertRegex(done.stdout, r'\n\| Schema Revision +\| failure +\| The schema is at ')

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


def meaning(*names: str) -> list[str]:
    """Return what is expected of unknown options that resemble these options."""
    return [f'warning Did you mean {name}?' for name in names]


# Parts of the configuration file, and the verdicts on them.
OPTIONS: tuple[tuple[str, Expected], ...] = (
    (
        'conection_recycle_time = 1\n[zzz]\n[placment]\nx = 1\ny = 2\n[DEFAULT]\nconnection = x\n'
        '[API]\nauth_strategy = noauth2\nzzz = 1\n[cors.other]\nallowed_origin = http://a\n'
        '[healthcheck]\nbackends = disable_by_file\n'
        '[oslo_middleware]\nenable_proxy_headers_parsing = true\n',
        {
            'Configuration Files': ['ok Read: /'],
            'Option Names': [
                'warning conf: [placement_database] conection_recycle_time. It has no effect. Did '
                'you mean [placement_database] connection_recycle_time?',
                'warning Remove the group.',
                'warning Unknown group in ',
                *meaning('[placement_database] connection'),
                'warning Remove the option.',
            ],
            'Health Checks': ['warning Add placement_database to [healthcheck] backends.'],
            'Proxy Headers': ['ok The service trusts '],
            # A check that needs a skipped check has the same reason.
            **{name: ['skipped The service does not use Keystone'] for name in AFTER_OPTIONS},
        },
    ),
    (
        '[keystone_authtoken]\nauth_section = mine\n[mine]\nauth_type = password\npasword = hush\n'
        '[healthcheck]\nbackends = disable_by_file,database\n',
        {
            'Option Names': meaning('[mine] password'),
            'Health Checks': ['failure unknown names: database. '],
            'Proxy Headers': ['ok The service ignores '],
        },
    ),
    # Names of older releases of libraries, and known options of libraries.
    (
        'idle_timeout = 1\n[DEFAULT]\nsql_connection = x\nlog_file = x\n[keystone_authtoken]\n'
        'auth_type = password\nauth_uri = x\nidentity_uri = x\nadmin_user = x\n'
        'admin_password = x\nadmin_tenant_name = x\npassword = hush\n'
        '[oslo_policy]\nenforce_new_defaults = true\n[cache]\nenabled = false\n'
        '[healthcheck]\nbackends = disable_by_file,placement_database\n',
        {
            'Option Names': meaning(
                '[placement_database] connection_recycle_time',
                '[placement_database] connection',
                '[keystone_authtoken] www_authenticate_uri',
                '[keystone_authtoken] auth_url',
                '[keystone_authtoken] username',
                '[keystone_authtoken] password',
                '[keystone_authtoken] project_name',
            ),
            'Health Checks': ['ok Backends: disable_by_file, placement_database.'],
        },
    ),
    (
        'max_retries = many\n[keystone_authtoken]\ntoken_cache_time = long\nmemcache_servers = a\n'
        '[placement]\nallocation_candidates_generation_strategy = wide\n'
        '[DEFAULT]\nauth_strategy = noauth2\ndebug = true\n',
        {
            'Deprecated Options': [
                'warning [DEFAULT] auth_strategy is deprecated. Use [api] auth_strategy.',
                'warning Use [keystone_authtoken] memcached_servers.',
            ],
            'Option Values': [
                'failure allocation_candidates_generation_strategy is invalid: ',
                "failure max_retries is invalid: invalid literal for int() with base 10: 'many'",
                'failure token_cache_time is invalid: ',
            ],
            'Debug Logging': ['warning Set [DEFAULT] debug to false.'],
        },
    ),
)
# The text of policy.yaml, and the verdict on its rules.
RULES: tuple[tuple[str, str], ...] = (
    ('', 'ok Changed rules: 0.'),
    ('admin_api: "role:boss"', 'ok Changed rules: 1.'),
    ('admin_api: "!"', 'ok Changed rules: 1.'),
    ('admin_api: "role:admin"', 'ok 1 equal their default'),
    ('placement:trait:list: "role:admin"', 'warning Did you mean placement:traits:list?'),
    ('mine: "role:me"', 'warning Unknown rule: mine'),
    ('mine: "role:me"\nadmin_api: "rule:mine"', 'ok Changed rules: 2.'),
    ('admin_api: "role:admin or"', 'failure admin_api is invalid'),
    ('admin_api: "role"', 'failure admin_api is invalid'),
    ('admin_api: "role:a or (rule:boss)"', 'failure admin_api refers to the rule boss'),
    ('admin_api: "rule:mine"\nmine: "rule:admin_api"', 'failure to itself'),
)
# Policy files, and the verdict on them.
FILES: tuple[tuple[Mapping[str, str], str], ...] = (
    ({}, 'ok No file.'),
    ({'policy.json': '{"admin_api": "role:boss"}'}, 'warning policy.json is not read.'),
    ({'policy.json': '{}', 'policy.yaml': ''}, 'warning or remove it.'),
    ({'policy.d/policy.json': '{}'}, 'ok Read: '),
    ({'policy.d/a.yaml': 'admin_api: "role:boss"', 'policy.d/.hidden': '['}, 'ok Read: '),
    ({'policy.yaml': 'a: "b\n'}, 'failure line 2'),
    ({'policy.yaml': '- a\n'}, 'failure does not map names'),
    ({'policy.yaml': 'admin_api: 5\n'}, 'failure does not map names'),
    ({'policy.yaml/directory': ''}, 'failure policy.yaml cannot be used'),
    ({'policy.d': ''}, 'failure policy.d'),
)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ConfigurationTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')

    def test_options(self):
        for text, expected in OPTIONS:
            with self.subTest(text):
                self.check(expected, text)

    def with_files(self, files: Mapping[str, str], text: str, expected: Expected) -> None:
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, content in files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(content)
        names = ('Policy Files', 'Policy Rules')
        with mock.patch.object(report, 'CHECKS', {name: report.CHECKS[name] for name in names}):
            findings = self.preflight(text)
        self.assertFound(expected, {key: findings[key] for key in expected})

    def test_policy_rules(self):
        for text, verdict in RULES:
            self.with_files({'policy.yaml': text}, '', {'Policy Rules': [verdict]})
        directory = {'policy.yaml': 'admin_api: "rule:boss"', 'policy.d/a': 'boss: "role:boss"'}
        self.with_files(directory, '', {'Policy Rules': ['ok Changed rules: 2.']})

    def test_policy_files(self):
        for files, verdict in FILES:
            rules = 'skipped ' if verdict.startswith('failure') else 'ok '
            self.with_files(files, '', {'Policy Files': [verdict], 'Policy Rules': [rules]})
        for text, verdict in (
            ('policy_file = my.yaml', 'warning my.yaml does not exist'),
            ('policy_dirs = my.d', 'warning my.d does not exist'),
        ):
            expected = {'Policy Files': [verdict], 'Policy Rules': ['ok Changed rules: 0.']}
            self.with_files({}, f'[oslo_policy]\n{text}', expected)

    def test_policy_servers(self):
        rules = 'admin_api: "role:a or https://policy.example/"\nservice_api: "http://other/"\n'
        for text, expected in (
            ('', ['ok ', 'warning the rule admin_api is not verified']),
            ('remote_ssl_verify_server_crt = true', ['ok ']),
        ):
            text = f'[oslo_policy]\n{text}'
            self.with_files({'policy.yaml': rules}, text, {'Policy Rules': expected})

    def test_a_policy_file_in_json(self):
        (self.folder / 'policy.json').write_text('{"admin_api": "role:boss"}')
        remedy = 'failure oslopolicy-convert-json-to-yaml'
        text = '[oslo_policy]\npolicy_file = policy.json\n'
        self.check({'Policy File JSON to YAML Migration': [remedy]}, text)

    def test_environment_variables(self):
        """Other services have variables, too. Deprecated names have no effect."""
        variables = {
            'OS_API__AUTH_STRATEGI': 'keystone',
            'OS_DEFAULT__AUTH_STRATEGY': 'keystone',
            'OS_AUTH_URL': 'http://other',
            'OS_PLACMENT_DATABASE__CONNECTION': 'x',
            'OS_ZZZ__CONNECTION': 'x',
        }
        remedies = ('[api] auth_strategy', '[api] auth_strategy', '[placement_database]')
        self.check({'Option Names': meaning(*remedies)}, variables=variables)

    def test_metrics(self):
        folder = str(self.folder)
        for directory, library, expected in (
            ('', False, "failure pip install 'openstack-placement[metrics]'"),
            ('', True, 'ok set PROMETHEUS_MULTIPROC_DIR in their environment'),
            (folder, True, f'ok Processes share {folder}.'),
            (f'{folder}/missing', True, 'warning Create the directory'),
        ):
            variables = {'PROMETHEUS_MULTIPROC_DIR': directory} if directory else {}
            with mock.patch.dict('sys.modules', {} if library else {'prometheus_client': None}):
                self.check(
                    {'Metrics': [expected]}, '[metrics]\nenabled = true\n', variables=variables
                )

    def test_urls(self):
        """The checks find these mistakes before they connect, and print no secrets."""
        server = f'mysql+pymysql://me:hush@127.0.0.1:{free_port()}'
        driver, connection = 'Database Driver', 'Database Connection'
        for url, expected in (
            (f'{server}/p?ssl_ca=/no/ca', 'failure The file /no/ca (ssl_ca in '),
            (f'{server}/p?plugin=dbcounter', 'failure sqlalchemy.plugins:dbcounter Install the'),
        ):
            self.assertNotIn('hush', str(self.check({connection: [expected]}, connection=url)))
        for url, missing, expected in (
            (server, '', 'connection names no database'),
            ('mysql+pymysql://me:a@hush:b@x:c/p', '', 'is not a URL'),
            ('oracle://me:hush@db/p', '', 'does not support'),
            ('mysql+no://me:hush@db/p', '', 'mysql+no cannot'),
            (f'{server}/p', 'pymysql', "'openstack-placement[mysql]'"),
            ('mysql://me:hush@db/p', 'MySQLdb', "'openstack-placement[mysqlclient]'"),
            ('mysql+mysqldb://me:hush@db/p', 'MySQLdb', "'openstack-placement[mysqlclient]'"),
            ('postgresql+psycopg://me:hush@db/p', 'psycopg', "'openstack-placement[postgresql]'"),
            ('postgresql+psycopg2://me:hush@db/p', 'psycopg2', 'or install it'),
        ):
            texts = {driver: [f'failure {expected}'], connection: ['skipped ']}
            libraries = {missing: None} if missing else {}
            with self.subTest(url), mock.patch.dict('sys.modules', libraries):
                self.assertNotIn('hush', str(self.check(texts, connection=url)))


@where.only_on('sqlite', reason='No SQL statement is executed.')
class IdentityTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')
        self.server = self.useFixture(IdentityServer(catalog=BOTH))

    def identity(self, expected: Expected, more: str = '', **attributes: Any) -> Findings:
        """Run the checks with Keystone; the last value of an option counts."""
        with mock.patch.dict(vars(self.server), attributes):
            findings = self.preflight(KEYSTONE.format(url=self.server.url) + more)
        self.assertFound(expected, findings)
        self.assertNotIn('hush', str(findings))
        return findings

    def test_a_good_deployment(self):
        endpoint = self.server.endpoint
        findings = self.identity(
            {
                'Keystone Options': ['ok '],
                'Keystone Endpoints': ['ok ', 'ok '],
                'Service Credentials': ['ok User placement, project service, roles: service.'],
                'Identity Endpoint': [f'ok {endpoint} responds.'],
                'Service Catalog': [f'ok respond: internal {endpoint}; public {endpoint}.'],
            }
        )
        skipped = sum(listed[0].result == 'skipped' for listed in findings.values())
        listed = sum(map(len, findings.values()))
        self.assertEqual(f'{listed - skipped} ok, {skipped} skipped\n', self.table().stdout)

    def test_users(self):
        credentials = 'Service Credentials'
        skipped: Expected = {'Identity Endpoint': ['skipped '], 'Service Catalog': ['skipped ']}
        refused = 'failure Connection refused'
        url = f'http://127.0.0.1:{free_port()}/v3'
        self.identity(
            {'Keystone Endpoints': [refused] * 2, credentials: [refused], **skipped},
            f'auth_url = {url}\nwww_authenticate_uri = {url}',
        )
        self.identity({credentials: ['failure Authenticate'], **skipped}, 'username = nobody')
        self.identity({}, roles=('admin', 'member'))
        self.identity({credentials: ['warning roles: member.']}, roles=('member',))
        self.identity({credentials: ['warning roles: none.']}, roles=())

    def test_the_identity_endpoint(self):
        """The service validates tokens at the endpoint of the configured region and interface."""
        endpoint = 'Identity Endpoint'
        region = 'failure no internal endpoint of the type identity in the region two. '
        closed = f'http://127.0.0.1:{free_port()}'
        self.identity({endpoint: [region], 'Service Catalog': ['warning ']}, 'region_name = two')
        self.identity({endpoint: ['failure no inner endpoint']}, 'interface = inner')
        self.identity({}, 'region_name = one\ninterface = admin')
        self.identity({endpoint: ['failure Connection refused']}, keystone=closed)
        missing = f'{self.server.endpoint}/x'
        self.identity({endpoint: ['warning status code 404']}, keystone=missing)

    def test_endpoints_of_the_service(self):
        one, public = 'region_name = one', ('public',)
        none = 'warning --region one placement internal'
        closed, missing = f'http://127.0.0.1:{free_port()}', f'{self.server.endpoint}/x'
        both = {'endpoint': closed, 'interfaces': ('admin', 'internal')}
        for attributes, more, expected in (
            ({}, one, ['ok ']),
            ({'catalog': ('identity',)}, '', ['warning --region REGION placement public']),
            ({'interfaces': public}, '', ['warning --region REGION placement internal']),
            ({'interfaces': public}, one, [none]),
            ({'region': 'two'}, one, ['warning --region one placement public']),
            ({'endpoint': missing, 'interfaces': public}, one, ['warning code 404', none]),
            (both, one, ['warning Connection refused'] * 2),
        ):
            self.identity({'Service Catalog': expected}, more, **attributes)

    def test_options(self):
        options, endpoints = 'Keystone Options', 'Keystone Endpoints'
        skipped = {key: [f'skipped The check "{options}" failed.'] for key in AFTER_OPTIONS}
        unsigned = SIGNED.replace('hush-memcached', '')
        other = f'www_authenticate_uri = {self.server.url.replace("/v3", "/other")}'
        no_uri = 'warning _uri is not set'
        for more, expected in (
            ('cafile = /no/ca', {options: ['failure /no/ca ([keys'], **skipped}),
            (unsigned, {options: ['failure memcache_secret_key is not'], **skipped}),
            (SIGNED, {}),
            ('insecure = true', {options: ['warning insecure is true']}),
            (
                'www_authenticate_uri =\nservice_token_roles_required = false',
                {options: [no_uri, 'warning _required is false'], endpoints: ['ok ']},
            ),
            (other, {endpoints: ['warning status code 404', 'ok ']}),
        ):
            with self.subTest(more):
                self.identity(expected, more)
        without = {'Service Credentials': ['ok does not describe its user.']}
        without |= {name: ['skipped '] for name in ('Identity Endpoint', 'Service Catalog')}
        for text, expected in (
            ('', {options: ['failure auth_type is not set', no_uri], **skipped}),
            ('auth_type = pasword', {options: ['failure pasword is not', no_uri], **skipped}),
            ('auth_type = none', {options: [no_uri], **without}),
        ):
            self.assertFound(expected, self.preflight(f'[keystone_authtoken]\n{text}\n'))

    def test_connections_to_other_hosts(self):
        """Every host is regarded as another one."""
        address = self.useFixture(memcached_server.Memcached()).address
        unsafe = {
            'Keystone Endpoints': ['warning without TLS'] * 2,
            'Identity Endpoint': ['warning without TLS'],
            'Token Cache': ['warning without TLS'],
        }
        with mock.patch('placement.admin.preflight.database.is_local', return_value=False):
            self.identity(unsafe, f'memcached_servers = {address}\n{SIGNED}')

    def test_memcached(self):
        address = self.useFixture(memcached_server.Memcached()).address
        closed = f'127.0.0.1:{free_port()}'
        both = f'memcached_servers = {address},{closed}\n'
        unprotected = 'failure Remove [keystone_authtoken] memcached_servers'
        refused = 'warning Connection refused'
        encrypted = SIGNED.replace('MAC', 'ENCRYPT')
        for text, expected in (
            (both + SIGNED, ['ok stores values', refused]),
            (both, [unprotected, 'ok stores values', refused]),
            (f'{both}cache = swift.cache', ['ok uses no memcached']),
            (f'{both}token_cache_time = 0', ['ok uses no memcached']),
            (f'{both}memcache_sasl_enabled = true', ['warning does not support SASL']),
        ):
            self.identity({'Token Cache': expected}, text)
        # Python does not import a module that is None here.
        with mock.patch.dict('sys.modules', {'cryptography': None}):
            extra = "warning `pip install 'openstack-placement[memcached]'`"
            self.identity({'Token Cache': [extra]}, f'memcached_servers = {closed}\n{encrypted}')

    def test_memcached_with_tls(self):
        """A value is written and read with the configured connection."""
        cache = self.useFixture(memcached_server.Memcached(tls=True))
        address = f'memcached_servers = {cache.address}\n{SIGNED}'
        options = '\n'.join(f'{name} = {value}' for name, value in cache.options().items())
        self.identity({'Token Cache': ['ok ']}, f'{address}\n{options}')
        self.identity({'Token Cache': ['warning ']}, address)


class DataTest(TestCase):
    def test_revisions(self):
        """The schema is empty, older, newer, incomplete, or without a revision."""
        data = ('Missing Root Provider IDs', 'Incomplete Consumers')
        no_data = {key: ['skipped '] for key in data}
        lacking = 'failure these tables do not exist: users. Restore the database'
        none, no_users = 'DROP TABLE alembic_version', 'DROP TABLE users'
        newer = "UPDATE alembic_version SET version_num = 'feedbeef'"
        for upgraded, statements, expected in (
            ('', (), {'Schema Revision': ['failure Run `placement-manage db sync`.'], **no_data}),
            ('422ece571366', (), {'Schema Revision': ['failure 422ece571366; this release']}),
            ('head', (newer,), {'Schema Revision': ['warning newer release']}),
            ('head', (no_users,), {'Schema Revision': [lacking]}),
            ('head', (no_users, none), {'Schema Revision': ['failure Missing: users. Check']}),
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
