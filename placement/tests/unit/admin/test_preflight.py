"""The execution of checks, and what they conclude from settings that no test server has."""

from collections.abc import Callable, Mapping, Sequence
import threading
from typing import Any
from unittest import mock

import fixtures
from oslo_config import cfg
from oslotest import base
import sqlalchemy as sa

from placement import conf
from placement.admin.preflight import database, identity, model, report, settings
from placement.admin.preflight.model import Check, Steps
from placement.conf import database as database_options

Settings = Mapping[str, str]
COLLATION = 'utf8mb4_general_ci'
LATIN, UTF8MB3 = 'latin1_swedish_ci', 'utf8mb3_general_ci'
STRICT, COMMITTED = {'sql_mode': 'STRICT_ALL_TABLES,TRADITIONAL'}, 'READ-COMMITTED'
PG_ISOLATION = 'default_transaction_isolation'
NODE = {
    'wsrep_on': 'ON',
    'innodb_autoinc_lock_mode': '2',
    'binlog_format': 'ROW',
    'wsrep_ready': 'ON',
    'wsrep_cluster_status': 'Primary',
    'wsrep_cluster_size': '3',
    'wsrep_local_state_comment': 'Synced',
}
SINGLE = 'group_replication_single_primary_mode'
GROUP = {'group_replication_group_name': 'a', SINGLE: 'ON'}
PG_LIMITS = {'server_encoding': 'UTF8', 'max_connections': '100'}
RESERVED = {'superuser_reserved_connections': '3', 'reserved_connections': '2'}


class Server:
    """A connection to a server with some settings. Only PostgreSQL has a `server_encoding`.

    :param values: the values that a statement for other things than settings returns: the
        collations of the tables, or the limits of the account
    """

    def __init__(self, settings: Settings, values: Sequence[Any] = ()) -> None:
        self.dialect = mock.Mock()
        self.dialect.name = 'postgresql' if 'server_encoding' in settings else 'mysql'
        self.settings = settings
        self.values = values

    def exec_driver_sql(self, statement: str) -> Any:
        if statement != 'SHOW TABLE STATUS':
            return self.settings.items()
        found = {'Name': 'consumers', 'Engine': 'InnoDB'}
        others = [{'Name': 'other', 'Engine': 'MyISAM', 'Collation': LATIN}]
        rows = [{**found, 'Collation': value} for value in self.values] + others
        return mock.Mock(mappings=lambda: rows)

    def scalars(self, _statement: Any) -> Any:
        return self.values


def collation(name: str) -> Settings:
    return {'collation_database': name}


# For each check: the settings of the server, the values of other statements, the results of the
# check, and a text in the first one. Servers with other settings are in test_preflight_databases.
Case = tuple[Settings, Sequence[Any], str, str]
CASES: Mapping[Callable[..., Steps], Sequence[Case]] = {
    settings.check_access: (
        ({'read_only': 'OFF'}, (), 'ok', ''),
        ({'read_only': 'NO_LOCK'}, (), 'failure', 'read_only = NO_LOCK'),
        ({'transaction_read_only': 'on'}, (), 'failure', 'primary server'),
    ),
    settings.check_characters: (
        ({'server_encoding': 'UTF8'}, (), 'ok', 'UTF8.'),
        (collation(COLLATION), (), 'ok', ' utf8mb4_general_ci.'),
        (collation(LATIN), (), 'warning', 'other characters are rejected'),
        (collation(LATIN), (COLLATION, COLLATION), 'ok', ''),
        (collation(UTF8MB3), (UTF8MB3,), 'ok', 'four-byte characters are rejected'),
        (collation(UTF8MB3), (COLLATION, UTF8MB3), 'warning', 'different collations'),
    ),
    settings.check_storage_engine: (({}, (), 'ok', ''), ({}, (COLLATION,), 'ok', '')),
    settings.check_session: (
        ({'tx_isolation': COMMITTED, **STRICT}, (), 'ok', ''),
        ({'transaction_isolation': COMMITTED, **STRICT}, (), 'ok', ''),
        ({'tx_isolation': 'REPEATABLE-READ', **STRICT}, (), 'failure', 'REPEATABLE-READ'),
        ({'tx_isolation': COMMITTED, 'sql_mode': ''}, (), 'failure', 'of STRICT_ALL_TABLES'),
        ({PG_ISOLATION: 'read committed', 'client_encoding': 'UTF8'}, (), 'ok', ''),
        ({PG_ISOLATION: 'serializable', 'client_encoding': 'SQL'}, (), 'failure failure', 'serial'),
    ),
    settings.check_group: (
        ({}, (), 'skipped', ''),
        ({'group_replication_group_name': ''}, (), 'skipped', ''),
        (GROUP, (), 'ok', ''),
        ({**GROUP, SINGLE: 'OFF'}, (), 'warning', f'{SINGLE} to ON'),
    ),
    settings.check_galera: (
        ({'wsrep_on': 'OFF'}, (), 'skipped', ''),
        (NODE, (), 'ok', '3 members'),
        ({**NODE, 'wsrep_cluster_size': '2'}, (), 'warning', 'members is 2.'),
        ({**NODE, 'wsrep_cluster_size': '5'}, (), 'ok', ''),
        (
            {**NODE, 'wsrep_cluster_status': 'non-Primary'},
            (),
            'failure',
            'non-Primary instead of Primary',
        ),
        ({**NODE, 'wsrep_ready': 'OFF'}, (), 'failure', 'wsrep_ready'),
        ({**NODE, 'wsrep_local_state_comment': 'Donor'}, (), 'warning', 'Donor'),
        ({**NODE, 'innodb_autoinc_lock_mode': '1'}, (), 'failure', 'lock_mode = 1 instead of 2'),
        ({**NODE, 'binlog_format': 'MIXED'}, (), 'failure', 'MIXED instead of ROW'),
        ({**NODE, 'wsrep_dirty_reads': 'ON'}, (), 'warning', 'wsrep_dirty_reads'),
        ({**NODE, 'wsrep_dirty_reads': 'OFF'}, (), 'ok', ''),
    ),
}


def parsed(options: Mapping[str, Any]) -> cfg.ConfigOpts:
    """Return a configuration with some options of `[placement_database]`."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    for name, value in {'connection': 'x://me:hush@y/z', **options}.items():
        config.set_override(name, value, group='placement_database')
    config([], default_config_files=[], default_config_dirs=[])
    return config


def configuration(
    options: Mapping[str, Any], machines: int = 1, processes: int = 1, threads: int = 1
) -> Any:
    """Return such a configuration, with the size of a deployment."""
    size = mock.Mock(machines=machines, processes=processes, threads=threads)
    return mock.Mock(placement_database=parsed(options).placement_database, command=size)


class SettingsTest(base.BaseTestCase):
    def assertVerdicts(self, expected: str, text: str, steps: Steps) -> None:
        verdicts = report.collect(steps, mock.Mock())
        results = ' '.join(verdict.result for verdict in verdicts)
        self.assertEqual(expected, results, verdicts)
        self.assertIn(text, f'{verdicts[0].detail} {verdicts[0].remedy}')

    def test_settings(self):
        config = configuration({})
        for check, cases in CASES.items():
            for values, rows, results, text in cases:
                with self.subTest(check.__name__, values=values, rows=rows):
                    self.assertVerdicts(results, text, check(config, Server(values, rows)))

    def test_options_of_clusters(self):
        for value, remedy in ((7, ''), (15, ''), (0, 7), (1, 7), (3, 7), (5, 7), (6, 7), (8, 15)):
            config = configuration({'mysql_wsrep_sync_wait': value})
            expected = ('failure', f'or set it to {remedy}.') if remedy else ('ok', '')
            steps = settings.check_galera(config, Server(NODE))
            self.assertVerdicts(*expected, steps)
        steps = settings.check_group(configuration({'slave_connection': 'x'}), Server(GROUP))
        self.assertVerdicts('warning', 'slave_connection is set', steps)

    def test_the_limits_of_mysql(self):
        """A process with one thread opens 3 connections."""
        one = 'threads of each: 1, connections of each process: 3). The server accepts 30: enough'
        for most, size, results, text in (
            (30, (), 'ok', f'{one} for 10 processes'),
            (30, (2, 5), 'ok', ''),
            (29, (2, 5), 'warning', '30 connections (machines: 2, processes of each: 5, '),
            (139, (2, 5, 8), 'warning', 'can open 140 connections'),
        ):
            server = Server({'max_connections': str(most)})
            steps = settings.check_limits(configuration({}, *size), server)
            self.assertVerdicts(results, text, steps)

    def test_the_limits_of_postgresql(self):
        """The role and the database can have limits, too; old versions have fewer settings."""
        for values, more, most in (
            (RESERVED, (), 95),
            ({}, (-1, -1), 100),
            ({}, (-1, 20), 20),
            ({}, (0, 20), 0),
            ({}, (200, -1), 100),
        ):
            steps = settings.check_limits(configuration({}), Server({**PG_LIMITS, **values}, more))
            self.assertVerdicts('ok' if most else 'warning', f'accepts {most}', steps)

    def test_the_connections_of_a_process(self):
        for options, threads, expected in (
            ({}, None, 16),
            ({'max_pool_size': 3, 'max_overflow': 0}, None, 4),
            ({'max_pool_size': 0}, None, None),
            ({'max_overflow': -1}, None, None),
            ({'max_overflow': -1}, 8, 14),
            ({}, 4, 9),
            ({'max_overflow': 1000}, 1, 3),
            ({}, 40, 16),
            ({'max_pool_size': 0}, 4, 9),
        ):
            found = database_options.connections_of_process(options, threads)
            self.assertEqual(expected, found, (options, threads))


class EncryptionTest(base.BaseTestCase):
    """Connections to a local database need no encryption."""

    LOCAL = (
        'mysql+pymysql://me@localhost/p',
        'mysql+pymysql://me@127.0.0.1/p?charset=utf8mb4',
        'mysql+mysqldb://me@[::1]:3306/p',
        'mysql+pymysql://me@db/p?unix_socket=/run/mysqld/mysqld.sock',
        'mysql+pymysql:///p',
        'postgresql+psycopg:///p?host=/run/postgresql',
        'postgresql+psycopg://me@/p?host=localhost&host=127.0.0.1',
        'postgresql+psycopg://me@db/p?hostaddr=127.0.0.1',
    )
    REMOTE = (
        'mysql+pymysql://me@db/p',
        'mysql+mysqldb://me@192.0.2.1/p',
        'mysql+pymysql://me@localhost.example.org/p',
        'postgresql+psycopg://me@db/p',
        'postgresql+psycopg://me@/p?host=localhost&host=db',
        'postgresql+psycopg://me@localhost/p?hostaddr=192.0.2.1',
    )

    def test_databases(self):
        for text in self.LOCAL:
            self.assertTrue(database.is_local_database(sa.make_url(text)), text)
        for text in self.REMOTE:
            self.assertFalse(database.is_local_database(sa.make_url(text)), text)

    def test_urls(self):
        """HTTP to another host is not encrypted."""
        for url, expected in (
            ('https://keystone/v3', False),
            ('http://keystone/v3', True),
            ('HTTP://192.0.2.1:5000', True),
            ('http://[2001:db8::1]:5000', True),
            ('http://localhost:5000/v3', False),
            ('http://127.0.0.5/v3', False),
            ('http://[::1]:5000/v3', False),
        ):
            self.assertIs(expected, identity.is_plain_url(url), url)


class RunTest(base.BaseTestCase):
    """Time limits and crashes of checks."""

    def test_checks_that_crash_or_do_not_end(self):
        """The message contains a secret, which is masked unless it is a part of a word."""
        never = threading.Event()
        self.addCleanup(never.set)

        def crash(_config: cfg.ConfigOpts) -> Steps:
            yield model.ok('Fine.')
            raise RuntimeError('in two\nlines, with hush and hushed')

        def wait(_config: cfg.ConfigOpts) -> Steps:
            yield model.ok(str(never.wait()))
            return ''

        def succeed(_config: cfg.ConfigOpts) -> Steps:
            yield from ()
            return 'Fine.'

        checks = {
            'a': Check(crash),
            'b': Check(wait),
            'c': Check(succeed),
            'd': Check(succeed, needs='b'),
            'e': Check(succeed, needs='d'),
        }
        self.useFixture(fixtures.MockPatchObject(report, 'CHECKS', checks))
        self.assertEqual(
            [
                ('a', 'ok', 'Fine.'),
                ('a', 'failure', 'in two lines, with *** and hushed.'),
                ('b', 'failure', 'The check did not end within 5 seconds.'),
                ('c', 'ok', 'Fine.'),
                ('d', 'skipped', 'The check "b" failed.'),
                ('e', 'skipped', 'The check "b" failed.'),
            ],
            [
                (one['name'], one['result'], one['detail'])
                for one in report.run(parsed({}), seconds=5)
            ],
        )
