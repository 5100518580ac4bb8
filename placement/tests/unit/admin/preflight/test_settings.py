"""Checks of the settings of database servers."""

from typing import Any

from oslotest import base

from placement.admin.preflight import galera, limits, mysql, postgresql, sqlite
from placement.admin.preflight.model import Result, Verdict
from placement.admin.preflight.mysql import TableFacts
from placement.conf import database

OK, WARNING, FAILURE, SKIPPED = Result.OK, Result.WARNING, Result.FAILURE, Result.SKIPPED


def results(verdicts: list[Verdict]) -> list[Result]:
    return [verdict.result for verdict in verdicts]


def table(engine: str = 'InnoDB', collation: str = 'utf8mb4_general_ci', name: str = 't') -> Any:
    return TableFacts(name, engine, collation)


class MysqlTest(base.BaseTestCase):
    def test_writable(self):
        for settings, expected in (
            ({}, OK),
            ({'read_only': 'OFF', 'super_read_only': 'OFF'}, OK),
            ({'read_only': '0'}, OK),
            ({'read_only': 'ON'}, FAILURE),
            ({'read_only': 'NO_LOCK'}, FAILURE),
            ({'read_only': 'ON', 'super_read_only': 'ON'}, FAILURE),
        ):
            self.assertEqual(expected, mysql.judge_writable(settings).result, settings)

    def test_character_set(self):
        general, latin = 'utf8mb3_general_ci', 'latin1_swedish_ci'
        for default, tables, expected in (
            ('utf8mb4_general_ci', [], [OK]),
            (latin, [], [WARNING]),
            (latin, [table(), table()], [OK]),
            (general, [table(collation=general)], [OK]),
            (general, [table(), table(collation=general)], [WARNING]),
            (latin, [table(), table(collation=latin)], [WARNING, WARNING]),
        ):
            verdicts = mysql.judge_character_set(default.split('_')[0], default, tables)
            self.assertEqual(expected, results(verdicts), (default, tables))

    def test_three_byte_characters_are_a_note(self):
        verdict = mysql.judge_character_set('utf8mb3', 'utf8mb3_general_ci', [])[0]
        self.assertIn('four-byte characters', verdict.detail)
        verdict = mysql.judge_character_set('utf8mb4', 'utf8mb4_general_ci', [])[0]
        self.assertNotIn('four-byte characters', verdict.detail)

    def test_group(self):
        group = {'group_replication_group_name': 'a'}
        single = {**group, 'group_replication_single_primary_mode': 'ON'}
        several = {**group, 'group_replication_single_primary_mode': 'OFF'}
        for settings, has_replica, expected in (
            ({}, True, [SKIPPED]),
            ({'group_replication_group_name': ''}, True, [SKIPPED]),
            (single, False, [OK]),
            (single, True, [WARNING]),
            (several, False, [WARNING]),
            (several, True, [WARNING, WARNING]),
        ):
            self.assertEqual(expected, results(mysql.judge_group(settings, has_replica)), settings)

    def test_storage_engine(self):
        for default, tables, expected in (
            ('InnoDB', [], OK),
            ('MyISAM', [], FAILURE),
            ('MyISAM', [table()], OK),
            ('InnoDB', [table(), table('MyISAM', name='other')], FAILURE),
        ):
            verdict = mysql.judge_storage_engine(default, tables)
            self.assertEqual(expected, verdict.result, (default, tables))

    def test_tables_without_transactions_are_named(self):
        verdict = mysql.judge_storage_engine('InnoDB', [table('Aria', name='consumers')])
        self.assertIn('consumers', verdict.detail)

    def test_binary_log(self):
        for settings, expected in (
            ({}, OK),
            ({'log_bin': 'OFF', 'binlog_format': 'STATEMENT'}, OK),
            ({'log_bin': 'ON', 'binlog_format': 'STATEMENT'}, FAILURE),
            ({'log_bin': 'ON', 'binlog_format': 'MIXED'}, OK),
            ({'log_bin': 'ON', 'binlog_format': 'ROW'}, OK),
            ({'log_bin': 'ON'}, OK),  # later versions of MySQL support ROW only
        ):
            self.assertEqual(expected, mysql.judge_binary_log(settings).result, settings)

    def test_session(self):
        strict = 'STRICT_ALL_TABLES,TRADITIONAL'
        for settings, expected in (
            ({'transaction_isolation': 'READ-COMMITTED', 'sql_mode': strict}, [OK]),
            ({'tx_isolation': 'READ-COMMITTED', 'sql_mode': strict}, [OK]),
            ({'tx_isolation': 'REPEATABLE-READ', 'sql_mode': strict}, [FAILURE]),
            ({'tx_isolation': 'READ-COMMITTED', 'sql_mode': ''}, [FAILURE]),
            ({}, [FAILURE, FAILURE]),
        ):
            self.assertEqual(expected, results(mysql.judge_session(settings)), settings)


class PostgresqlTest(base.BaseTestCase):
    def test_writable(self):
        for settings, is_replica, expected in (
            ({'default_transaction_read_only': 'off'}, False, OK),
            ({'default_transaction_read_only': 'on'}, False, FAILURE),
            ({'default_transaction_read_only': 'off'}, True, FAILURE),
        ):
            verdict = postgresql.judge_writable(settings, is_replica)
            self.assertEqual(expected, verdict.result, (settings, is_replica))

    def test_encoding(self):
        for encoding, expected in (('UTF8', OK), ('LATIN1', WARNING), ('SQL_ASCII', WARNING)):
            self.assertEqual(expected, postgresql.judge_character_set(encoding).result, encoding)

    def test_session(self):
        good = {'default_transaction_isolation': 'read committed', 'client_encoding': 'UTF8'}
        self.assertEqual([OK], results(postgresql.judge_session(good)))
        bad = good | {'default_transaction_isolation': 'serializable'}
        self.assertEqual([FAILURE], results(postgresql.judge_session(bad)))
        self.assertEqual([FAILURE, FAILURE], results(postgresql.judge_session({})))

    def test_limits(self):
        accepted = postgresql.accepted(
            {
                'max_connections': '100',
                'superuser_reserved_connections': '3',
                'reserved_connections': '2',
                'idle_session_timeout': '60000',
            }
        )
        self.assertEqual(limits.Limits(95, 60, 'idle_session_timeout'), accepted)

    def test_limits_of_the_role_and_of_the_database(self):
        for more, expected in (([-1, -1], 100), ([-1, 20], 20), ([0, 20], 0), ([200, -1], 100)):
            accepted = postgresql.accepted({'max_connections': '100'}, more)
            self.assertEqual(expected, accepted.connections, more)

    def test_limits_of_older_versions(self):
        accepted = postgresql.accepted({'max_connections': '100'})
        self.assertEqual(limits.Limits(100, 0, 'idle_session_timeout'), accepted)


class LimitsTest(base.BaseTestCase):
    def judge(
        self, connections: int, idle: int, used: int | None, recycle: int, *size: int
    ) -> list[Verdict]:
        return limits.judge(
            limits.Limits(connections, idle, 'wait_timeout'), limits.Service(used, recycle, *size)
        )

    def test_limits(self):
        for arguments, expected in (
            ((151, 28800, 15, 3600), [OK]),
            ((151, 0, 15, 3600), [OK]),  # the server keeps idle connections
            ((151, 3601, 15, 3600), [OK]),
            ((151, 3600, 15, 3600), [WARNING]),
            ((151, 600, 15, 3600), [WARNING]),
            ((151, 600, 15, -1), [WARNING]),  # the pool keeps connections forever
            ((14, 28800, 15, 3600), [WARNING]),
            ((14, 600, 15, 3600), [WARNING, WARNING]),
            ((14, 28800, None, 3600), [OK]),
            ((150, 28800, 15, 3600, 2, 5), [OK]),
            ((149, 28800, 15, 3600, 2, 5), [WARNING]),
            ((14, 28800, None, 3600, 2, 5), [OK]),
        ):
            self.assertEqual(expected, results(self.judge(*arguments)), arguments)

    def test_the_processes_of_all_machines_are_counted(self):
        detail = self.judge(149, 0, 15, 3600, 2, 5)[0].detail
        self.assertIn('10 processes (machines: 2, processes of each: 5) can open 150', detail)

    def test_the_connections_of_a_process(self):
        for options, threads, expected in (
            ({}, None, 16),
            ({'max_pool_size': 3, 'max_overflow': 0}, None, 4),
            ({'max_pool_size': 0}, None, None),
            ({'max_overflow': -1}, None, None),
            ({'max_overflow': -1}, 8, 9),
            ({}, 4, 5),
            ({}, 40, 16),
            ({'connection': 'mysql+pymysql://host/placement'}, 4, 6),
            ({'connection': 'mysql+pymysql://host/placement', 'max_pool_size': 20}, 4, 9),
            ({'connection': 'mysql+pymysql://host/placement', 'max_pool_size': 0}, 4, 5),
            ({'connection': 'postgresql+psycopg://host/placement', 'max_pool_size': 20}, 4, 5),
        ):
            found = database.connections_of_process(options, threads)
            self.assertEqual(expected, found, (options, threads))

    def test_the_note_contains_the_number_of_processes(self):
        self.assertIn('enough for 10 processes', self.judge(151, 28800, 15, 3600)[0].detail)
        self.assertIn('no limit', self.judge(151, 28800, None, 3600)[0].detail)


class GaleraTest(base.BaseTestCase):
    SETTINGS = {'wsrep_on': 'ON', 'innodb_autoinc_lock_mode': '2', 'binlog_format': 'ROW'}
    STATUS = {
        'wsrep_ready': 'ON',
        'wsrep_cluster_status': 'Primary',
        'wsrep_local_state_comment': 'Synced',
        'wsrep_cluster_size': '3',
    }

    def judge(
        self,
        settings: dict[str, str] | None = None,
        status: dict[str, str] | None = None,
        sync_wait: int | None = None,
    ) -> list[Verdict]:
        return galera.judge(
            self.SETTINGS | (settings or {}), self.STATUS | (status or {}), sync_wait
        )

    def test_a_single_server(self):
        for settings in ({}, {'wsrep_on': 'OFF'}):
            self.assertEqual([SKIPPED], results(galera.judge(settings, {}, None)))

    def test_a_cluster(self):
        verdicts = self.judge()
        self.assertEqual([OK], results(verdicts))
        self.assertIn('3 members', verdicts[0].detail)

    def test_state(self):
        for status, expected in (
            ({'wsrep_cluster_status': 'non-Primary'}, [FAILURE]),
            ({'wsrep_ready': 'OFF'}, [FAILURE]),
            ({'wsrep_local_state_comment': 'Donor/Desynced'}, [WARNING]),
            ({'wsrep_cluster_size': '1'}, [WARNING]),
            ({'wsrep_cluster_size': '2'}, [WARNING]),
            ({'wsrep_cluster_size': '4'}, [WARNING]),
            ({'wsrep_cluster_size': '5'}, [OK]),
        ):
            self.assertEqual(expected, results(self.judge(status=status)), status)

    def test_settings(self):
        for settings, expected in (
            ({'innodb_autoinc_lock_mode': '1'}, [FAILURE]),
            ({'binlog_format': 'MIXED'}, [FAILURE]),
            ({'wsrep_dirty_reads': 'ON'}, [WARNING]),
            ({'wsrep_dirty_reads': 'OFF'}, [OK]),
        ):
            self.assertEqual(expected, results(self.judge(settings=settings)), settings)

    def test_waits_for_other_nodes(self):
        for value in (None, 7, 15):
            self.assertEqual([OK], results(self.judge(sync_wait=value)), value)
        for value, remedy in ((0, 7), (1, 7), (3, 7), (5, 7), (6, 7), (8, 15)):
            (verdict,) = self.judge(sync_wait=value)
            self.assertEqual(FAILURE, verdict.result, value)
            self.assertIn(f'or set it to {remedy}.', verdict.remedy)


class SqliteTest(base.BaseTestCase):
    def test_writable(self):
        for file, directory, expected in (
            (True, True, OK),
            (True, False, FAILURE),
            (False, True, FAILURE),
        ):
            verdict = sqlite.judge_writable('/a.db', file, directory)
            self.assertEqual(expected, verdict.result, (file, directory))

    def test_a_database_in_memory(self):
        self.assertEqual(WARNING, sqlite.judge_memory().result)
