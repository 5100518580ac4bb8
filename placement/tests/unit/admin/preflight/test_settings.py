"""What preflight concludes from the settings of database servers, and from URLs."""

from collections.abc import Callable, Sequence
from typing import Any

from oslotest import base
import sqlalchemy as sa

from placement.admin.preflight import encryption, galera, limits, mysql, postgresql
from placement.admin.preflight.model import Verdict
from placement.conf import database

STRICT = 'STRICT_ALL_TABLES,TRADITIONAL'
COMMITTED = 'READ-COMMITTED'
GENERAL, LATIN, UTF8MB3 = 'utf8mb4_general_ci', 'latin1_swedish_ci', 'utf8mb3_general_ci'
GROUP = {'group_replication_group_name': 'a'}
SINGLE, SEVERAL = (
    {**GROUP, 'group_replication_single_primary_mode': value} for value in ('ON', 'OFF')
)
SESSION = {'default_transaction_isolation': 'read committed', 'client_encoding': 'UTF8'}
NODE = {'wsrep_on': 'ON', 'innodb_autoinc_lock_mode': '2', 'binlog_format': 'ROW'}
SYNCED = {
    'wsrep_ready': 'ON',
    'wsrep_cluster_status': 'Primary',
    'wsrep_local_state_comment': 'Synced',
    'wsrep_cluster_size': '3',
}


def table(engine: str = 'InnoDB', collation: str = GENERAL) -> mysql.TableFacts:
    return mysql.TableFacts('consumers', engine, collation)


def character_set(default: str, *collations: str) -> list[Verdict]:
    tables = [table(collation=one) for one in collations]
    return mysql.judge_character_set(default.split('_')[0], default, tables)


def connections(most: int, idle: int, used: int, recycle: int, *size: int) -> list[Verdict]:
    accepted = limits.Limits(most, idle, 'wait_timeout')
    return limits.judge(accepted, limits.Service(used, recycle, *size))


# The function, its arguments, the results of its verdicts, and a text in the first of them.
Case = tuple[Callable[..., Any], Sequence[Any], str, str]
MYSQL: tuple[Case, ...] = (
    (mysql.judge_writable, [{}], 'ok', ''),
    (mysql.judge_writable, [{'read_only': 'OFF', 'super_read_only': 'OFF'}], 'ok', ''),
    (mysql.judge_writable, [{'read_only': '0'}], 'ok', ''),
    (mysql.judge_writable, [{'read_only': 'ON'}], 'failure', 'read_only = ON'),
    (mysql.judge_writable, [{'read_only': 'NO_LOCK'}], 'failure', 'read_only = NO_LOCK'),
    (mysql.judge_writable, [{'super_read_only': 'ON'}], 'failure', 'super_read_only = ON'),
    (character_set, [GENERAL], 'ok', 'Character set utf8mb4, collation utf8mb4_general_ci.'),
    (character_set, [LATIN], 'warning', 'other characters are rejected'),
    (character_set, [LATIN, GENERAL, GENERAL], 'ok', ''),
    (character_set, [UTF8MB3, UTF8MB3], 'ok', 'four-byte characters are rejected'),
    (character_set, [UTF8MB3, GENERAL, UTF8MB3], 'warning', 'different collations'),
    (character_set, [LATIN, GENERAL, LATIN], 'warning warning', 'other characters'),
    (mysql.judge_group, [{}, True], 'skipped', ''),
    (mysql.judge_group, [{'group_replication_group_name': ''}, True], 'skipped', ''),
    (mysql.judge_group, [SINGLE, False], 'ok', ''),
    (mysql.judge_group, [SINGLE, True], 'warning', 'slave_connection is set'),
    (mysql.judge_group, [SEVERAL, False], 'warning', 'single_primary_mode to ON'),
    (mysql.judge_group, [SEVERAL, True], 'warning warning', 'single_primary_mode to ON'),
    (mysql.judge_storage_engine, ['InnoDB', []], 'ok', ''),
    (mysql.judge_storage_engine, ['MyISAM', []], 'failure', ''),
    (mysql.judge_storage_engine, ['MyISAM', [table()]], 'ok', ''),
    (mysql.judge_storage_engine, ['InnoDB', [table(), table('Aria')]], 'failure', 'consumers'),
    (mysql.judge_binary_log, [{}], 'ok', ''),
    (mysql.judge_binary_log, [{'log_bin': 'OFF', 'binlog_format': 'STATEMENT'}], 'ok', ''),
    (mysql.judge_binary_log, [{'log_bin': 'ON', 'binlog_format': 'STATEMENT'}], 'failure', ''),
    (mysql.judge_binary_log, [{'log_bin': 'ON', 'binlog_format': 'MIXED'}], 'ok', ''),
    # Later versions of MySQL support ROW only.
    (mysql.judge_binary_log, [{'log_bin': 'ON'}], 'ok', ''),
    (mysql.judge_session, [{'tx_isolation': COMMITTED, 'sql_mode': STRICT}], 'ok', ''),
    (mysql.judge_session, [{'transaction_isolation': COMMITTED, 'sql_mode': STRICT}], 'ok', ''),
    (mysql.judge_session, [{'tx_isolation': 'REPEATABLE-READ', 'sql_mode': STRICT}], 'failure', ''),
    (mysql.judge_session, [{'tx_isolation': COMMITTED, 'sql_mode': ''}], 'failure', 'not strict'),
    (mysql.judge_session, [{}], 'failure failure', 'The isolation level is unknown.'),
)
POSTGRESQL: tuple[Case, ...] = (
    (postgresql.judge_writable, [{'default_transaction_read_only': 'off'}, False], 'ok', ''),
    (postgresql.judge_writable, [{'default_transaction_read_only': 'on'}, False], 'failure', ''),
    (postgresql.judge_writable, [{'default_transaction_read_only': 'off'}, True], 'failure', ''),
    (postgresql.judge_character_set, ['UTF8'], 'ok', ''),
    (postgresql.judge_character_set, ['LATIN1'], 'warning', ''),
    (postgresql.judge_session, [SESSION], 'ok', ''),
    (
        postgresql.judge_session,
        [{**SESSION, 'default_transaction_isolation': 'serializable'}],
        'failure',
        'isolation is serializable',
    ),
    (postgresql.judge_session, [{}], 'failure failure', 'None instead of read committed'),
)
CONNECTIONS: tuple[Case, ...] = (
    (connections, [151, 28800, 15, 3600], 'ok', 'enough for 10 processes'),
    (connections, [151, 0, 15, 3600], 'ok', ''),  # the server keeps idle connections
    (connections, [151, 3601, 15, 3600], 'ok', ''),
    (connections, [151, 3600, 15, 3600], 'warning', 'wait_timeout'),
    (connections, [151, 600, 15, -1], 'warning', ''),  # the pool keeps connections forever
    (
        connections,
        [14, 28800, 15, 3600],
        'warning',
        'A process with 1 thread can open 15 connections, and',
    ),
    (connections, [14, 600, 15, 3600], 'warning warning', ''),
    (connections, [150, 28800, 15, 3600, 2, 5], 'ok', ''),
    (
        connections,
        [149, 28800, 15, 3600, 2, 5, 8],
        'warning',
        '10 processes (machines: 2, processes of each: 5, threads of each: 8) can open 150',
    ),
)
GALERA: tuple[Case, ...] = (
    (galera.judge, [{}, {}, None], 'skipped', ''),
    (galera.judge, [{'wsrep_on': 'OFF'}, {}, None], 'skipped', ''),
    (galera.judge, [NODE, SYNCED, None], 'ok', '3 members'),
    *(
        (galera.judge, [NODE, {**SYNCED, name: value}, None], result, '')
        for name, value, result in (
            ('wsrep_cluster_status', 'non-Primary', 'failure'),
            ('wsrep_ready', 'OFF', 'failure'),
            ('wsrep_local_state_comment', 'Donor/Desynced', 'warning'),
            ('wsrep_cluster_size', '1', 'warning'),
            ('wsrep_cluster_size', '2', 'warning'),
            ('wsrep_cluster_size', '4', 'warning'),
            ('wsrep_cluster_size', '5', 'ok'),
        )
    ),
    *(
        (galera.judge, [{**NODE, name: value}, SYNCED, None], result, name if result else '')
        for name, value, result in (
            ('innodb_autoinc_lock_mode', '1', 'failure'),
            ('binlog_format', 'MIXED', 'failure'),
            ('wsrep_dirty_reads', 'ON', 'warning'),
        )
    ),
    (galera.judge, [{**NODE, 'wsrep_dirty_reads': 'OFF'}, SYNCED, None], 'ok', ''),
    *((galera.judge, [NODE, SYNCED, value], 'ok', '') for value in (7, 15)),
    *(
        (galera.judge, [NODE, SYNCED, value], 'failure', f'or set it to {remedy}.')
        for value, remedy in ((0, 7), (1, 7), (3, 7), (5, 7), (6, 7), (8, 15))
    ),
)


class SettingsTest(base.BaseTestCase):
    def test_settings(self):
        for function, arguments, results, text in (*MYSQL, *POSTGRESQL, *CONNECTIONS, *GALERA):
            with self.subTest(function.__name__, arguments=arguments):
                found = function(*arguments)
                verdicts = [found] if isinstance(found, Verdict) else found
                self.assertEqual(results, ' '.join(verdict.result for verdict in verdicts))
                self.assertIn(text, f'{verdicts[0].detail} {verdicts[0].remedy}')

    def test_the_limits_of_postgresql(self):
        """The role and the database can have limits, too; old versions have fewer settings."""
        reserved = {'superuser_reserved_connections': '3', 'reserved_connections': '2'}
        for settings, more, most, idle in (
            ({**reserved, 'idle_session_timeout': '60000'}, (), 95, 60),
            ({}, (-1, -1), 100, 0),
            ({}, (-1, 20), 20, 0),
            ({}, (0, 20), 0, 0),
            ({}, (200, -1), 100, 0),
        ):
            accepted = postgresql.accepted({'max_connections': '100', **settings}, more)
            self.assertEqual(limits.Limits(most, idle, 'idle_session_timeout'), accepted)

    def test_the_connections_of_a_process(self):
        for options, threads, expected in (
            ({}, None, 16),
            ({'max_pool_size': 3, 'max_overflow': 0}, None, 4),
            ({'max_pool_size': 0}, None, None),
            ({'max_overflow': -1}, None, None),
            ({'max_overflow': -1}, 8, 14),
            ({}, 4, 9),
            ({'max_overflow': 1000}, 1, 3),
            ({}, 8, 14),
            ({}, 40, 16),
            ({'max_pool_size': 0}, 4, 9),
        ):
            found = database.connections_of_process(options, threads)
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
    # The parameters with which the driver verifies the server, by URL.
    REMOTE = {
        'mysql+pymysql://me@db/p': 'Add ssl_ca=FILE to',
        'mysql+mysqldb://me@192.0.2.1/p': 'Add ssl_mode=VERIFY_IDENTITY&ssl_ca=FILE to',
        'mysql://me@db/p': 'Add ssl_mode=VERIFY_IDENTITY&ssl_ca=FILE to',
        'mysql+pymysql://me@[2001:db8::1]/p': 'Add ssl_ca=FILE to',
        'mysql+pymysql://me@localhost.example.org/p': 'Add ssl_ca=FILE to',
        'postgresql+psycopg://me@db/p': 'Add sslmode=verify-full&sslrootcert=FILE to',
        'postgresql+psycopg://me@/p?host=localhost&host=db': 'Add sslmode=verify-full',
        'postgresql+psycopg://me@localhost/p?hostaddr=192.0.2.1': 'Add sslmode=verify-full',
    }

    def judge(self, text: str, is_encrypted: bool, is_verified: bool) -> tuple[str, str]:
        url = sa.make_url(text)
        verdict = encryption.judge_database(url, 'Connected.', is_encrypted, is_verified)
        return verdict.result, verdict.remedy

    def test_databases(self):
        for text in self.LOCAL:
            self.assertEqual(('ok', ''), self.judge(text, False, False), text)
        for text, parameters in self.REMOTE.items():
            self.assertEqual(('ok', ''), self.judge(text, True, True), text)
            for is_encrypted in (False, True):
                result, remedy = self.judge(text, is_encrypted, False)
                self.assertEqual('warning', result, text)
                self.assertIn(parameters, remedy)
                self.assertEqual(not is_encrypted, 'on the server' in remedy)

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
            self.assertIs(expected, encryption.is_plain_url(url), url)
