"""The checks of placement-status preflight with real databases."""

from collections.abc import Mapping, Sequence
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest
from unittest import mock

import sqlalchemy as sa

from placement.admin.preflight import encryption
from placement.admin.preflight.model import Result, Verdict
from placement.db.sqlalchemy import migration, models
from placement.tests import servers, where
from placement.tests.functional.cmd import test_preflight
from placement.tests.functional.cmd.test_preflight import NOAUTH, unused_port
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands

GALERA_LIBRARY = '/usr/lib/galera/libgalera_smm.so'
NOAUTH_WARNING = {'Authentication Strategy': 'warning'}
# The checks that need a connection to the database.
NEED_CONNECTION = [
    check.name for check in test_preflight.CHECKS if 'Database Connection' in check.needs
]


def require_engine(name: str) -> None:
    if servers.engine() != name:
        raise unittest.SkipTest(f'the test runs only on {name}')


@where.only_on('sqlite', reason='The test runs only on SQLite.')
@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class SqliteTest(test_preflight.TestCase):
    def test_no_file_is_created(self):
        path = self.folder / 'other.db'
        findings = self.preflight(NOAUTH, f'sqlite:///{path}')
        self.assertResults(
            NOAUTH_WARNING
            | {'Database Connection': 'failure'}
            | dict.fromkeys(NEED_CONNECTION, 'skipped'),
            findings,
        )
        self.assertIn('placement-manage db sync', findings['Database Connection'][0].remedy)
        self.assertEqual(['placement.conf'], [entry.name for entry in self.folder.iterdir()])

    def test_no_file_is_created_beside_a_database(self):
        migration.upgrade('head')
        self.engine.dispose()
        folder = pathlib.Path(str(self.engine.url.database)).parent
        before = {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir()}
        self.assertEqual(['placement.db'], list(before))
        self.assertResults(NOAUTH_WARNING, self.preflight(NOAUTH))
        self.assertEqual(
            before, {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir()}
        )

    def test_rows_that_only_the_wal_contains(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.exec_driver_sql("INSERT INTO resource_providers (uuid, name) VALUES ('a', 'a')")
        # The open connection of this process keeps the WAL.
        self.assertResults(
            NOAUTH_WARNING | {'Missing Root Provider IDs': 'failure'}, self.preflight(NOAUTH)
        )

    def test_the_journal_mode_stays(self):
        path = self.folder / 'other.db'
        engine = sa.create_engine(f'sqlite:///{path}')
        with engine.begin() as conn:
            conn.exec_driver_sql('CREATE TABLE t (x INTEGER)')
        self.preflight(NOAUTH, f'sqlite:///{path}')
        with engine.connect() as conn:
            self.assertEqual('delete', conn.exec_driver_sql('PRAGMA journal_mode').scalar())

    def test_a_database_in_memory(self):
        findings = self.preflight(NOAUTH, 'sqlite://')
        self.assertResults(
            NOAUTH_WARNING
            | {
                'Database Access': 'warning',
                'Schema Revision': 'failure',
                'Missing Root Provider IDs': 'skipped',
                'Incomplete Consumers': 'skipped',
            },
            findings,
        )


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class ServerTest(test_preflight.TestCase):
    """What all servers have in common."""

    def setUp(self) -> None:
        machines.engine_of_run()
        super().setUp()
        self.url = sa.make_url(self.database.url)

    def check_connection(self, url: sa.URL, remedy: str) -> str:
        findings = self.preflight(NOAUTH, url.render_as_string(hide_password=False))
        self.assertResults(
            NOAUTH_WARNING
            | {'Database Connection': 'failure'}
            | dict.fromkeys(NEED_CONNECTION, 'skipped'),
            findings,
        )
        verdict = findings['Database Connection'][0]
        self.assertIn(remedy, verdict.remedy)
        self.assertNotIn(str(url.password), str(findings))
        return verdict.detail

    def test_no_server(self):
        detail = self.check_connection(self.url.set(port=unused_port()), 'Start the server')
        self.assertIn('127.0.0.1', detail)

    def test_a_server_that_does_not_respond(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            port = silent.getsockname()[1]
            self.check_connection(self.url.set(port=port), 'Start the server')

    def test_a_wrong_password(self):
        self.check_connection(self.url.set(password='hush-database'), 'Grant the privileges')

    def test_an_unknown_database(self):
        self.check_connection(self.url.set(database='nothing'), 'Create the database')

    def test_a_replica(self):
        migration.upgrade('head')
        replica = self.url.set(port=unused_port()).render_as_string(hide_password=False)
        self.assertResults(
            NOAUTH_WARNING | {'Replica Connection': 'failure'},
            self.preflight(f'slave_connection = {replica}\n{NOAUTH}'),
        )
        url = self.url.render_as_string(hide_password=False)
        findings = self.preflight(f'slave_connection = {url}\n{NOAUTH}')
        self.assertResults(NOAUTH_WARNING | {'Replica Connection': 'ok'}, findings)

    def test_pool(self):
        migration.upgrade('head')
        findings = self.preflight(f'max_pool_size = 1000\n{NOAUTH}')
        self.assertResults(NOAUTH_WARNING | {'Connection Limits': 'warning'}, findings)

    def test_the_size_of_the_deployment(self):
        migration.upgrade('head')
        size = '--machines 40 --processes 5 --threads 2 --format json'
        done = self.execute(NOAUTH, *size.split())
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        # On MariaDB and MySQL, the pool of 5 connections keeps two for each thread.
        each = 3 if self.url.get_backend_name() == 'postgresql' else 5
        text = f'can open {200 * each} connections, {each} each, and the server accepts'
        self.assertIn(text, done.stdout)

    def test_the_limit_of_the_account(self):
        migration.upgrade('head')
        account = servers.create_account(self.url, ('SELECT', 'INSERT', 'UPDATE', 'DELETE'))
        limit = f"ALTER USER '{account.username}'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 4"
        if account.get_backend_name() == 'postgresql':
            limit = f'ALTER ROLE {account.username} CONNECTION LIMIT 4'
        servers.execute(self.url, limit)
        url = account.render_as_string(hide_password=False)
        checks = [
            check
            for check in test_preflight.CHECKS
            if check.name in ('Database Driver', 'Database Connection', 'Connection Limits')
        ]
        (verdict,) = self.preflight(NOAUTH, url, checks)['Connection Limits']
        self.assertIn('can open 16 connections, and the server accepts 4', verdict.detail)

    def test_an_account_that_cannot_upgrade_an_empty_database(self):
        account = servers.create_account(self.url, ('SELECT',))
        url = account.render_as_string(hide_password=False)
        findings = self.preflight(NOAUTH, url)
        for name in ('Database Privileges', 'Schema Revision'):
            self.assertEqual(Result.FAILURE, findings[name][-1].result, findings)
            self.assertIn('lacks: CREATE', findings[name][-1].detail)
        self.assertIn('as a user that has them', findings['Schema Revision'][0].remedy)


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class EncryptionTest(test_preflight.TestCase):
    """A server with TLS, whose certificate is also that of its CA."""

    CHECKS = tuple(
        check
        for check in test_preflight.CHECKS
        if check.name in ('Database Driver', 'Database Connection')
    )
    # The parameters of each driver: without TLS, with TLS, with verification.
    PARAMETERS: Mapping[str, tuple[str, str, str]] = {
        'pymysql': ('ssl_disabled=true', '', 'ssl_ca={}'),
        'mysqldb': (
            'ssl_mode=DISABLED',
            'ssl_mode=REQUIRED',
            'ssl_mode=VERIFY_IDENTITY&ssl_ca={}',
        ),
        'psycopg': ('sslmode=disable', 'sslmode=require', 'sslmode=verify-full&sslrootcert={}'),
    }

    def setUp(self) -> None:
        engine = machines.engine_of_run()
        # See PrivateMariadbTest.
        certificate = self.create_certificate(engine)
        options = [f'--ssl-cert={certificate}', f'--ssl-key={certificate.with_name("key")}']
        if engine == 'postgresql':
            key = f'ssl_key_file={certificate.with_name("key")}'
            options = ['-c', 'ssl=on', '-c', f'ssl_cert_file={certificate}', '-c', key]
        server = machines.DatabaseServer(*options)
        self.addCleanup(server.remove)
        super().setUp()
        self.url = sa.make_url(server.create_database('placement'))
        driver = self.url.get_driver_name()
        self.parameters = [text.format(certificate) for text in self.PARAMETERS[driver]]

    def create_certificate(self, engine: str) -> pathlib.Path:
        folder = pathlib.Path(tempfile.mkdtemp(prefix='placement-tls-'))
        self.addCleanup(shutil.rmtree, folder)
        # The server runs as another user.
        folder.chmod(0o755)
        certificate, key = folder / 'certificate', folder / 'key'
        command = (
            *(commands.program('openssl'), 'req', '-x509', '-nodes', '-days', '2'),
            *('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-subj', '/CN=test'),
            *('-addext', 'subjectAltName=IP:127.0.0.1', '-out', certificate, '-keyout', key),
        )
        subprocess.run(command, check=True, capture_output=True)
        key.chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(key, machines.tool('with_database').ENGINES[engine][1])
        return certificate

    def connect(self, parameters: str) -> Verdict:
        text = self.url.render_as_string(hide_password=False)
        text = f'{text}{"&" if self.url.query else "?"}{parameters}'.rstrip('?&')
        (verdict,) = self.preflight(NOAUTH, text, self.CHECKS)['Database Connection']
        return verdict

    def test_connections(self):
        plain, encrypted, verified = self.parameters
        for parameters in self.parameters:
            self.assertEqual(Result.OK, self.connect(parameters).result)
        expected = [
            (plain, Result.WARNING, ', not encrypted.', 'Configure TLS on the server.'),
            (encrypted, Result.WARNING, ', encrypted (', 'Add ssl'),
            (verified, Result.OK, ', encrypted (', ''),
        ]
        if self.url.get_driver_name() == 'pymysql':
            # This parameter overrides the other one.
            unverified = f'{verified}&ssl_verify_cert=false'
            expected.append((unverified, Result.WARNING, ', encrypted (', 'Add ssl'))
        with mock.patch.object(encryption, 'is_local', return_value=False):
            for parameters, result, detail, remedy in expected:
                verdict = self.connect(parameters)
                self.assertEqual(result, verdict.result, verdict)
                self.assertIn(detail, verdict.detail)
                self.assertIn(remedy, verdict.remedy)


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class PrivilegesTest(test_preflight.TestCase):
    """Accounts with privileges on the tables of the database."""

    REQUIRED = ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    MIGRATING = ('CREATE', 'ALTER', 'DROP', 'INDEX')
    CHECKS = tuple(check for check in test_preflight.CHECKS if 'Database' in check.name)

    def setUp(self) -> None:
        self.system = machines.engine_of_run()
        super().setUp()
        self.url = sa.make_url(self.database.url)

    def verdicts(self, account: sa.URL) -> list[Verdict]:
        url = account.render_as_string(hide_password=False)
        findings = self.preflight(NOAUTH, url, self.CHECKS)
        self.assertEqual('ok', findings['Database Access'][0].result, findings)
        return findings['Database Privileges']

    def check(self, privileges: Sequence[str], *details: str) -> list[Verdict]:
        """Compare the details of the verdicts on an account; those of failures begin with `!`."""
        verdicts = self.verdicts(servers.create_account(self.url, privileges))
        marks = {Result.OK: '', Result.FAILURE: '!'}
        self.assertEqual(list(details), [f'{marks[v.result]}{v.detail}' for v in verdicts])
        return verdicts

    def test_the_current_schema(self):
        migration.upgrade('head')
        every = ', '.join(sorted(models.metadata.tables))
        complete = 'The user can read and write 12 tables.'
        self.assertEqual([complete], [verdict.detail for verdict in self.verdicts(self.url)])
        if self.system == 'postgresql':
            (verdict,) = self.verdicts(servers.create_account(self.url, self.REQUIRED))
            self.assertRegex(verdict.detail, r'^The user lacks: USAGE on .*traits_id_seq.*\.$')
            self.assertIn('Grant USAGE on all sequences.', verdict.remedy)
            self.grant_sequences()
        self.check(self.REQUIRED, complete)
        for missing in self.REQUIRED[1:]:
            granted = [name for name in self.REQUIRED if name != missing]
            (verdict,) = self.check(granted, f'!The user lacks: {missing} on {every}.')
            self.assertIn('Grant SELECT, INSERT, UPDATE, and DELETE', verdict.remedy)
        # Privileges on single tables.
        account = servers.create_account(self.url, ())
        postgresql = self.system == 'postgresql'
        user = account.username if postgresql else f"'{account.username}'@'127.0.0.1'"
        readable = [f'GRANT SELECT ON {name} TO {user}' for name in self.tables()]
        servers.execute(self.url, *readable, f'GRANT INSERT, UPDATE ON traits TO {user}')
        (verdict,) = self.verdicts(account)
        others = every.replace('traits, users', 'users')
        self.assertEqual(
            f'The user lacks: INSERT on {others}; UPDATE on {others}; DELETE on {every}.',
            verdict.detail,
        )

    def test_an_older_schema(self):
        migration.upgrade('b4ed3a175331')
        before = self.tables()
        complete = 'The user can read and write 11 tables.'
        both = [complete, 'The user can migrate the schema.']
        lacking = '!The user cannot migrate the schema; it lacks: {}.'
        self.assertEqual(both, [verdict.detail for verdict in self.verdicts(self.url)])
        if self.system != 'postgresql':
            for missing in self.MIGRATING:
                granted = [name for name in self.MIGRATING if name != missing]
                self.check((*self.REQUIRED, *granted), complete, lacking.format(missing))
            self.check((*self.REQUIRED, *self.MIGRATING), *both)
        else:
            self.grant_sequences()
            denied = 'CREATE on the schema, ownership of the tables'
            self.check(self.REQUIRED, complete, lacking.format(denied))
        self.assertEqual(before, self.tables())

    def test_an_empty_database(self):
        lacking = 'CREATE on the schema'
        if self.system != 'postgresql':
            lacking = ', '.join(self.MIGRATING)
        self.check(self.REQUIRED, f'!The user cannot migrate the schema; it lacks: {lacking}.')
        self.assertEqual([], self.tables())

    def test_a_revision_that_the_user_cannot_read(self):
        migration.upgrade('head')
        account = servers.create_account(self.url, ())
        postgresql = self.system == 'postgresql'
        user = account.username if postgresql else f"'{account.username}'@'127.0.0.1'"
        servers.execute(
            self.url, *(f'GRANT SELECT ON {name} TO {user}' for name in models.metadata.tables)
        )
        revision = [one for one in test_preflight.CHECKS if one.name == 'Schema Revision']
        url = account.render_as_string(hide_password=False)
        findings = self.preflight(NOAUTH, url, (*self.CHECKS, *revision))
        (verdict,) = findings['Schema Revision']
        if postgresql:
            self.assertEqual(Result.FAILURE, verdict.result)
            self.assertIn('permission denied for table alembic_version', verdict.detail)
        else:
            self.assertEqual(Result.WARNING, verdict.result)
            self.assertIn('Grant SELECT on alembic_version', verdict.remedy)

    def tables(self) -> list[str]:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        return sorted(sa.inspect(engine).get_table_names())

    def grant_sequences(self) -> None:
        """Let every account generate ids."""
        servers.execute(self.url, 'GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO PUBLIC')


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class MysqlTest(test_preflight.TestCase):
    def setUp(self) -> None:
        if machines.engine_of_run() == 'postgresql':
            self.skipTest('the test runs only on MariaDB and MySQL')
        super().setUp()
        migration.upgrade('head')

    def test_tables(self):
        with self.engine.begin() as conn:
            conn.exec_driver_sql('ALTER TABLE users CONVERT TO CHARACTER SET latin1')
            conn.exec_driver_sql('ALTER TABLE users ENGINE = MyISAM')
        findings = self.preflight(NOAUTH)
        self.assertResults(
            NOAUTH_WARNING | {'Character Set': 'warning warning', 'Storage Engine': 'failure'},
            findings,
        )
        self.assertIn('users', findings['Storage Engine'][0].detail)

    def test_an_invalid_sql_mode(self):
        findings = self.preflight(f'mysql_sql_mode = NO_SUCH_MODE\n{NOAUTH}')
        self.assertResults(NOAUTH_WARNING | {'Session Settings': 'failure'}, findings)
        self.assertIn('NO_SUCH_MODE', findings['Session Settings'][0].detail)


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class PrivateMariadbTest(test_preflight.TestCase):
    """Servers with settings of their own."""

    OPTIONS = (
        '--log-bin=binary',
        '--binlog-format=STATEMENT',
        '--wait-timeout=600',
        '--read-only=ON',
    )

    def setUp(self) -> None:
        require_engine('mariadb')
        # super().setUp() sets a temporary directory that only the current user can enter, so the
        # server, which runs as another user, is started before it.
        self.server = machines.DatabaseServer(*self.OPTIONS)
        self.addCleanup(self.server.remove)
        super().setUp()

    def test_unsuitable_settings(self):
        findings = self.preflight(NOAUTH, self.server.create_database('placement'))
        self.assertResults(
            NOAUTH_WARNING
            | {
                'Database Access': 'failure',
                'Binary Log Format': 'failure',
                # The service refuses the connection.
                'Session Settings': 'failure',
                'Connection Limits': 'warning',
                'Schema Revision': 'failure',
                'Missing Root Provider IDs': 'skipped',
                'Incomplete Consumers': 'skipped',
            },
            findings,
        )


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class GaleraTest(PrivateMariadbTest):
    OPTIONS = (
        '--wsrep-on=ON',
        f'--wsrep-provider={GALERA_LIBRARY}',
        '--wsrep-cluster-address=gcomm://',
        '--wsrep-provider-options=base_host=127.0.0.1;'
        f'gmcast.listen_addr=tcp://127.0.0.1:{unused_port()}',
        '--wsrep-node-address=127.0.0.1',
        '--binlog-format=ROW',
        '--innodb-autoinc-lock-mode=2',
    )

    def test_unsuitable_settings(self):
        url = self.server.create_database('placement')
        findings = self.preflight(
            f'mysql_wsrep_sync_wait = 1\nsync_on_startup = true\n{NOAUTH}', url
        )
        self.assertResults(
            NOAUTH_WARNING
            | {
                'Galera Cluster': 'failure warning',
                'Missing Root Provider IDs': 'skipped',
                'Incomplete Consumers': 'skipped',
            },
            findings,
        )
        details = ' '.join(verdict.detail for verdict in findings['Galera Cluster'])
        self.assertIn('mysql_wsrep_sync_wait is 1', details)
        self.assertIn('one member', details)


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class PostgresqlTest(test_preflight.TestCase):
    def setUp(self) -> None:
        require_engine('postgresql')
        super().setUp()

    def test_settings(self):
        admin = sa.create_engine(
            servers.admin_url(), isolation_level='AUTOCOMMIT', poolclass=sa.NullPool
        )
        name = f'{sa.make_url(self.database.url).database}_latin'
        with admin.connect() as conn:
            conn.exec_driver_sql(
                f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
            )
            for setting in (
                'default_transaction_read_only = on',
                "idle_session_timeout = '60s'",
                "default_transaction_isolation = 'serializable'",
            ):
                conn.exec_driver_sql(f'ALTER DATABASE {name} SET {setting}')
        url = servers.admin_url().set(database=name).render_as_string(hide_password=False)
        findings = self.preflight(NOAUTH, url)
        self.assertResults(
            NOAUTH_WARNING
            | {
                'Database Access': 'failure',
                'Character Set': 'warning',
                # The service sets the isolation level of its connections.
                'Session Settings': 'ok',
                'Connection Limits': 'warning',
                'Schema Revision': 'failure',
                'Missing Root Provider IDs': 'skipped',
                'Incomplete Consumers': 'skipped',
            },
            findings,
        )
