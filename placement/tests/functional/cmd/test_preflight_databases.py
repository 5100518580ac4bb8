"""The checks of placement-status preflight with real databases."""

from collections.abc import Iterable, Mapping, Sequence
import pathlib
import socket
from unittest import mock

import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.tests import servers, tls_guide, where
from placement.tests.functional.cmd import test_preflight
from placement.tests.functional.cmd.test_preflight import Expected, Verdict
from placement.tests.functional.faults import machines, test_tls
from placement.tests.functional.faults.machines import free_port

OK, WARNING, FAILURE = 'ok', 'warning', 'failure'
GALERA_LIBRARY = '/usr/lib/galera/libgalera_smm.so'
NO_TABLES: Expected = {
    'Schema Revision': ['failure Run `placement-manage db sync`.'],
    'Missing Root Provider IDs': ['skipped '],
    'Incomplete Consumers': ['skipped '],
}


@where.only_on('sqlite', reason='SQLite has files.')
class SqliteTest(test_preflight.TestCase):
    def test_no_file_is_created(self):
        url = f'sqlite:///{self.folder / "other.db"}'
        remedy = 'failure does not exist. Run `placement-manage db sync`'
        self.check(
            {'Database Connection': [remedy], 'Schema Revision': ['skipped ']}, connection=url
        )
        self.assertEqual(['placement.conf'], [entry.name for entry in self.folder.iterdir()])

    def test_nothing_changes_beside_a_database(self):
        migration.upgrade('head')
        self.engine.dispose()
        folder = pathlib.Path(str(self.engine.url.database)).parent
        before = {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir()}
        self.assertEqual(['placement.db'], list(before))
        self.check({'Database Access': ['ok placement.db and its directory are writable']})
        self.assertEqual(
            before, {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir()}
        )

    def test_rows_that_only_the_wal_contains(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.exec_driver_sql("INSERT INTO resource_providers (uuid, name) VALUES ('a', 'a')")
        # The open connection of this process keeps the WAL.
        self.check({'Missing Root Provider IDs': ['failure ']})

    def test_the_journal_mode_stays(self):
        path = self.folder / 'a b.db'
        engine = sa.create_engine(f'sqlite:///{path}')
        with engine.begin() as conn:
            conn.exec_driver_sql('CREATE TABLE t (x INTEGER)')
        self.check(NO_TABLES, connection=f'sqlite:///{path}')
        with engine.connect() as conn:
            self.assertEqual('delete', conn.exec_driver_sql('PRAGMA journal_mode').scalar())

    def test_a_database_in_memory(self):
        access = {'Database Access': ['warning in memory']}
        self.check({**access, **NO_TABLES}, connection='sqlite://')


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
@where.not_on('sqlite', reason='The test needs a database server.')
class ServerTest(test_preflight.TestCase):
    """What all servers have in common."""

    def setUp(self) -> None:
        super().setUp()
        self.url = sa.make_url(self.database.url)

    def test_connections(self):
        """No server, one that does not respond, a wrong password, and an unknown database."""
        silent = self.enterContext(socket.create_server(('127.0.0.1', 0)))
        for parts, text in (
            ({'port': free_port()}, '127.0.0.1'),
            ({'port': silent.getsockname()[1]}, 'Start the database server'),
            ({'password': 'hush-database'}, 'Grant the privileges'),
            ({'database': 'nothing'}, 'does not exist'),
        ):
            url = self.url.set(**parts)
            findings = self.check(
                {'Database Connection': [f'failure {text}'], 'Schema Revision': ['skipped ']},
                connection=url,
            )
            self.assertNotIn(str(url.password), str(findings))

    def test_the_size_of_the_deployment(self):
        migration.upgrade('head')
        size = '--machines 40 --processes 5 --threads 2'
        findings = self.preflight(test_preflight.NOAUTH, arguments=size.split())
        # A process keeps two for each thread, and /healthcheck uses one.
        text = 'warning can open 1000 connections (machines: 40, processes of each: 5, threads'
        expected = {**test_preflight.NOAUTH_WARNING, 'Connection Limits': [text]}
        self.assertFound(expected, findings)
        # A thread does not open more connections because the pool permits them.
        text = 'ok The service can open 3 connections'
        self.check({'Connection Limits': [text]}, 'max_overflow = 1000\n')

    def test_the_limit_of_the_account(self):
        migration.upgrade('head')
        account = servers.create_account(self.url, ('SELECT', 'INSERT', 'UPDATE', 'DELETE'))
        limit = f"ALTER USER '{account.username}'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 2"
        if account.get_backend_name() == 'postgresql':
            limit = f'ALTER ROLE {account.username} CONNECTION LIMIT 2'
        servers.execute(self.url, limit)
        (verdict,) = self.preflight(test_preflight.NOAUTH, account)['Connection Limits']
        self.assertRegex(verdict.detail, 'can open 3 connections .*, and the server accepts 2')


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
@where.not_on('sqlite', reason='The test needs a database server.')
class EncryptionTest(test_preflight.TestCase):
    """A server with TLS."""

    # The parameters with which a driver does not verify the certificate.
    UNVERIFIED: Mapping[str, Mapping[str, str]] = {
        'pymysql': {},
        'mysqldb': {'ssl_mode': 'REQUIRED'},
        'psycopg': {'sslmode': 'require'},
    }

    def setUp(self) -> None:
        # See PrivateMariadbTest.
        self.certificates = test_tls.Certificates(servers.engine())
        self.addCleanup(self.certificates.remove)
        server = machines.DatabaseServer(*self.certificates.options())
        self.addCleanup(server.remove)
        super().setUp()
        self.url = sa.make_url(server.create_database('placement'))

    def connect(self, parameters: Mapping[str, str]) -> Verdict:
        findings = self.preflight(test_preflight.NOAUTH, self.url.set(query=parameters))
        (verdict,) = findings['Database Connection']
        return verdict

    def test_connections(self):
        driver = self.url.get_driver_name()
        plain, unverified = test_tls.DISABLED[driver], self.UNVERIFIED[driver]
        verified = tls_guide.verification(driver, self.certificates.trusted)
        for parameters in (plain, unverified, verified):
            self.assertEqual(OK, self.connect(parameters).result)
        expected = [
            (plain, WARNING, ', not encrypted.', 'Configure TLS on the server'),
            (unverified, WARNING, ', encrypted (', 'Configure TLS'),
            (verified, OK, ', encrypted (', ''),
        ]
        if driver == 'pymysql':
            # This parameter overrides the other one.
            overridden = {**verified, 'ssl_verify_cert': 'false'}
            expected.append((overridden, WARNING, ', encrypted (', 'Configure TLS'))
            # With these parameters, PyMySQL does not use the CA.
            expected += [
                ({**verified, name: 'true'}, FAILURE, 'certificate', f'Remove {name} from')
                for name in ('ssl_verify_cert', 'ssl_verify_identity')
            ]
        with mock.patch('placement.admin.preflight.database.is_local', return_value=False):
            for parameters, result, detail, remedy in expected:
                verdict = self.connect(parameters)
                self.assertEqual(result, verdict.result, verdict)
                self.assertIn(detail, verdict.detail)
                self.assertIn(remedy, verdict.remedy)


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
@where.not_on('sqlite', reason='The test needs a database server.')
class PrivilegesTest(test_preflight.TestCase):
    """Accounts with privileges on the tables of the database."""

    REQUIRED = ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    MIGRATING = ('CREATE', 'ALTER', 'DROP', 'INDEX')

    def setUp(self) -> None:
        super().setUp()
        self.system = servers.engine()
        self.url = sa.make_url(self.database.url)

    def verdicts(self, account: sa.URL) -> list[Verdict]:
        findings = self.preflight(test_preflight.NOAUTH, account)
        self.assertEqual('ok', findings['Database Access'][0].result, findings)
        return findings['Database Privileges']

    def assertDetails(self, privileges: Sequence[str], *details: str) -> list[Verdict]:
        """Compare the details of the verdicts on an account; those of failures begin with `!`."""
        verdicts = self.verdicts(servers.create_account(self.url, privileges))
        marks = {OK: '', FAILURE: '!'}
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
            self.assertIn('USAGE on all sequences.', verdict.remedy)
            self.grant_sequences()
        self.assertDetails(self.REQUIRED, complete)
        for missing in self.REQUIRED[1:]:
            granted = [name for name in self.REQUIRED if name != missing]
            (verdict,) = self.assertDetails(granted, f'!The user lacks: {missing} on {every}.')
            self.assertIn('Grant SELECT, INSERT, UPDATE, and DELETE', verdict.remedy)
        # Privileges on single tables.
        account, user = self.reading_account(self.tables())
        servers.execute(self.url, f'GRANT INSERT, UPDATE ON traits TO {user}')
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
                self.assertDetails((*self.REQUIRED, *granted), complete, lacking.format(missing))
            self.assertDetails((*self.REQUIRED, *self.MIGRATING), *both)
        else:
            self.grant_sequences()
            denied = 'CREATE on the schema, ownership of the tables'
            self.assertDetails(self.REQUIRED, complete, lacking.format(denied))
        self.assertEqual(before, self.tables())

    def test_an_empty_database(self):
        lacking = 'CREATE on the schema'
        if self.system != 'postgresql':
            lacking = ', '.join(self.MIGRATING)
        account = servers.create_account(self.url, self.REQUIRED)
        findings = self.preflight(test_preflight.NOAUTH, account)
        (privileges,), (revision,) = findings['Database Privileges'], findings['Schema Revision']
        self.assertEqual([FAILURE, FAILURE], [privileges.result, revision.result])
        self.assertIn(f'it lacks: {lacking}.', privileges.detail)
        self.assertIn('as a user that has them', privileges.remedy)
        self.assertEqual('Run `placement-manage db sync`.', revision.remedy)
        self.assertEqual([], self.tables())

    def test_a_revision_that_the_user_cannot_read(self):
        migration.upgrade('head')
        account, _ = self.reading_account(models.metadata.tables)
        (verdict,) = self.preflight(test_preflight.NOAUTH, account)['Schema Revision']
        if self.system == 'postgresql':
            self.assertEqual(FAILURE, verdict.result)
            self.assertIn('permission denied for table alembic_version', verdict.detail)
        else:
            self.assertEqual(WARNING, verdict.result)
            self.assertIn('Grant SELECT on alembic_version', verdict.remedy)

    def reading_account(self, tables: Iterable[str]) -> tuple[sa.URL, str]:
        """Create an account that can read some tables; return its URL, and its name in SQL."""
        account = servers.create_account(self.url, ())
        name = str(account.username)
        if self.system != 'postgresql':
            name = f"'{name}'@'127.0.0.1'"
        servers.execute(self.url, *(f'GRANT SELECT ON {table} TO {name}' for table in tables))
        return account, name

    def tables(self) -> list[str]:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        return sorted(sa.inspect(engine).get_table_names())

    def grant_sequences(self) -> None:
        """Let every account generate ids."""
        servers.execute(self.url, 'GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO PUBLIC')


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
@where.only_on('mariadb', 'mysql', reason='The tables have storage engines and character sets.')
class MysqlTest(test_preflight.TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')

    def test_tables(self):
        with self.engine.begin() as conn:
            conn.exec_driver_sql('ALTER TABLE users CONVERT TO CHARACTER SET latin1')
            conn.exec_driver_sql('ALTER TABLE users ENGINE = MyISAM')
        self.check({'Character Set': ['warning latin1'], 'Storage Engine': ['failure users']})

    def test_an_invalid_sql_mode(self):
        expected = {'Session Settings': ['failure NO_SUCH_MODE']}
        self.check(expected, 'mysql_sql_mode = NO_SUCH_MODE\n')


@where.only_on('mariadb', reason='The options are those of MariaDB.')
class PrivateMariadbTest(test_preflight.TestCase):
    """Servers with settings of their own."""

    OPTIONS = (
        '--log-bin=binary',
        '--binlog-format=STATEMENT',
        '--read-only=ON',
    )
    CONFIGURATION = ''
    EXPECTED: Expected = {
        'Database Access': ['failure read_only = ON'],
        # The service refuses the connection.
        'Session Settings': ['failure binlog_format=STATEMENT'],
        **NO_TABLES,
    }

    def setUp(self) -> None:
        # super().setUp() sets a temporary directory that only the current user can enter, so the
        # server, which runs as another user, is started before it.
        self.server = machines.DatabaseServer(*self.OPTIONS)
        self.addCleanup(self.server.remove)
        super().setUp()

    def test_unsuitable_settings(self):
        url = self.server.create_database('placement')
        self.check(self.EXPECTED, self.CONFIGURATION, connection=url)


class GaleraTest(PrivateMariadbTest):
    OPTIONS = (
        '--wsrep-on=ON',
        f'--wsrep-provider={GALERA_LIBRARY}',
        '--wsrep-cluster-address=gcomm://',
        '--wsrep-provider-options=base_host=127.0.0.1;'
        f'gmcast.listen_addr=tcp://127.0.0.1:{free_port()}',
        '--wsrep-node-address=127.0.0.1',
        '--binlog-format=ROW',
        '--innodb-autoinc-lock-mode=2',
    )
    CONFIGURATION = 'mysql_wsrep_sync_wait = 1\nsync_on_startup = true\n'
    EXPECTED: Expected = {
        **NO_TABLES,
        'Galera Cluster': [
            'failure mysql_wsrep_sync_wait is 1',
            'warning The number of members is 1',
        ],
        'Schema Revision': ['ok sync_on_startup'],
    }


@where.only_on('postgresql', reason='The settings are those of PostgreSQL.')
class PostgresqlTest(test_preflight.TestCase):
    def test_settings(self):
        name = f'{sa.make_url(self.database.url).database}_latin'
        create = f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
        settings = (
            'default_transaction_read_only = on',
            "default_transaction_isolation = 'serializable'",
        )
        altered = (f'ALTER DATABASE {name} SET {setting}' for setting in settings)
        servers.execute(servers.admin_url(), create, *altered)
        url = servers.admin_url().set(database=name)
        self.check(
            {
                'Database Access': ['failure transaction_read_only = on'],
                'Character Set': ['warning LATIN1'],
                # The service sets the isolation level of its connections.
                'Session Settings': ['ok '],
                **NO_TABLES,
            },
            connection=url,
        )
