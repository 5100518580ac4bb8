"""The service works with any session settings of servers, databases and users.

On PostgreSQL, the tests change the settings of the database. On MySQL and MariaDB, they use a
statement for each new connection, like `init_connect`, and `[placement_database] mysql_sql_mode`.
"""

from typing import Any
import uuid

import sqlalchemy as sa

from placement.db import connections
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.tests import servers, where
from placement.tests.functional.faults import machines
from placement.tests.functional.races import testcase

POSTGRESQL = {
    'DateStyle': 'German, DMY',
    'IntervalStyle': 'sql_standard',
    'TimeZone': 'Pacific/Apia',
    'bytea_output': 'escape',
    'extra_float_digits': '-15',
    'client_encoding': 'LATIN1',
    'standard_conforming_strings': 'off',
    'backslash_quote': 'on',
    'escape_string_warning': 'off',
    'transform_null_equals': 'on',
    'quote_all_identifiers': 'on',
    'default_transaction_isolation': 'serializable',
    'default_transaction_deferrable': 'on',
    'plan_cache_mode': 'force_generic_plan',
    'enable_seqscan': 'off',
    'enable_indexscan': 'off',
    'enable_sort': 'off',
    'jit': 'on',
    'jit_above_cost': '0',
    'lock_timeout': '0',
}
MYSQL = {
    'time_zone': "'+12:00'",
    'lc_messages': "'de_DE'",
    'lc_time_names': "'ja_JP'",
    'collation_connection': 'utf8mb4_german2_ci',
    'group_concat_max_len': '4',
    'div_precision_increment': '0',
    'max_sort_length': '64',
    'sql_select_limit': '1',
    'sql_safe_updates': '1',
    'sql_auto_is_null': '1',
    'sql_big_selects': '0',
    # oslo.db reads the variables of the server while this setting is in effect.
    'max_join_size': '5000',
    'completion_type': '1',
    'unique_checks': '0',
    'foreign_key_checks': '0',
    'autocommit': '1',
    'innodb_lock_wait_timeout': '1000',
    'lock_wait_timeout': '1000',
    'optimizer_switch': "'index_merge=off,semijoin=off,materialization=off'",
}
# Characters that are special in quoted texts, patterns or encodings.
NAME = 'a\\b\'c"d`e%f_g\u00e9\u4e2d\U0001f600'
TRAITS = [f'CUSTOM_SESSION_{number}' for number in range(30)]


class Settings:
    """Reads and writes of each kind."""

    def test_the_tour_of_the_readme(self):
        def send(method: str, path: str, body: Any = None, expect: int = 200) -> Any:
            response = self.send(method, path, body)
            self.assertEqual(expect, response.status, f'{method} {path}: {response.body}')
            return response.body

        machines.tool('tour').take(send)
        self.audit()

    def test_long_lists_special_characters_and_ratios(self):
        root, aggregates = str(uuid.uuid4()), sorted(str(uuid.uuid4()) for _ in range(30))
        for name in TRAITS:
            self.send_ok('PUT', f'/traits/{name}')
        self.assertLessEqual(set(TRAITS), set(self.send_ok('GET', '/traits')['traits']))
        self.send_ok('POST', '/resource_providers', {'name': NAME, 'uuid': root})
        self.assertEqual(409, self.send('POST', '/resource_providers', {'name': NAME}).status)
        child = self.make_provider({'VGPU': 4}, parent=root)
        inventories = {key: {'total': 100, 'allocation_ratio': 1.15} for key in ('VCPU', 'PCPU')}
        for generation, (kind, value) in enumerate(
            (('inventories', inventories), ('traits', TRAITS), ('aggregates', aggregates))
        ):
            path = f'/resource_providers/{root}/{kind}'
            self.send_ok('PUT', path, {'resource_provider_generation': generation, kind: value})
            shown = self.send_ok('GET', path)[kind]
            self.assertEqual(sorted(value), sorted(shown))
        every = self.send('GET', '/resource_providers')
        self.assertIn('GMT', every.headers['Last-Modified'])
        shown = {one['uuid']: one['name'] for one in every.body['resource_providers']}
        self.assertEqual({root: NAME, child: f'provider-{child}'}, shown)
        # The capacity is 100 * 1.15, which is 114.99999999999999 in double precision.
        for query, found in (
            (f'resources=VCPU:114&required={TRAITS[0]},{TRAITS[29]}', [root]),
            (f'resources=VCPU:115&required={TRAITS[0]},{TRAITS[29]}', []),
            (f'in_tree={child}&required=!{TRAITS[0]}', [child]),
        ):
            providers = self.send_ok('GET', f'/resource_providers?{query}')['resource_providers']
            self.assertEqual(found, [one['uuid'] for one in providers], query)
        candidates = self.send_ok('GET', '/allocation_candidates?resources=VCPU:114,VGPU:4')
        summary = candidates['provider_summaries'][root]
        self.assertEqual(sorted(TRAITS), sorted(summary['traits']))
        self.assertEqual({'capacity': 114, 'used': 0}, summary['resources']['VCPU'])
        path = f'/allocations/{uuid.uuid4()}'
        self.send_ok('PUT', path, testcase.claim({root: 60}, project=NAME))
        self.assertEqual(NAME, self.send_ok('GET', path)['project_id'])
        self.assertEqual(
            [409, 204], [call().status for n in (55, 54) for call in self.claims(root, 1, n)]
        )
        self.assertEqual(114, self.used(root))
        self.audit()

    def test_duplicate(self):
        """The transaction is retried after a duplicate key, whatever the language of messages."""
        attempts: list[sa.Connection] = []

        def work(conn: sa.Connection) -> None:
            attempts.append(conn)
            if len(attempts) == 1:
                conn.execute(sa.insert(models.traits), [{'name': 'CUSTOM_SAME'}] * 2)

        db_engine.write(work)
        self.assertEqual(2, len(attempts))

    def settings(self, statement):
        """The settings of a connection of the service."""
        with db_engine.get_placement_engine().connect() as conn:
            return {row[0]: str(row[1]) for row in conn.exec_driver_sql(statement)}


@where.only_on('postgresql', reason='The settings are those of PostgreSQL.')
class PostgresqlTest(Settings, testcase.RaceTestCase):
    def setUp(self) -> None:
        self.connection = servers.create()
        url = sa.make_url(self.connection)
        engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        with engine.connect() as conn:
            for name, value in POSTGRESQL.items():
                conn.exec_driver_sql(f"ALTER DATABASE {url.database} SET {name} = '{value}'")
        super().setUp()

    def test_settings(self) -> None:
        settings = self.settings('SELECT name, setting FROM pg_settings')
        # The settings of this test are in effect.
        self.assertEqual(POSTGRESQL['IntervalStyle'], settings['IntervalStyle'])
        self.assertEqual('off', settings['enable_seqscan'])
        expected = {
            'default_transaction_isolation': 'read committed',
            'transaction_isolation': 'read committed',
            'client_encoding': 'UTF8',
            'extra_float_digits': '3',
            'jit': 'off',
            'lock_timeout': str(1000 * connections.LOCK_SECONDS),
        }
        self.assertEqual(expected, {name: settings[name] for name in expected})


@where.only_on('mariadb', 'mysql', reason='The settings are those of MariaDB and MySQL.')
@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class MysqlTest(Settings, testcase.RaceTestCase):
    """An SQL mode that is not strict."""

    mode = ''

    def setUp(self) -> None:
        values = ', '.join(f'SESSION {name} = {value}' for name, value in MYSQL.items())
        url = sa.make_url(servers.create())
        url = url.update_query_dict({'init_command': f'SET {values}'})
        self.connection = url.render_as_string(hide_password=False)
        self.options = {'mysql_sql_mode': self.mode}
        super().setUp()

    def test_settings(self) -> None:
        settings = self.settings('SHOW SESSION VARIABLES')
        # Only MySQL and recent releases of MariaDB have `transaction_isolation`.
        isolation = 'tx_isolation' if servers.engine() == 'mariadb' else 'transaction_isolation'
        # The settings of this test are in effect.
        self.assertEqual('+12:00', settings['time_zone'])
        self.assertEqual('de_DE', settings['lc_messages'])
        expected = {
            isolation: 'READ-COMMITTED',
            'autocommit': 'OFF',
            'completion_type': 'NO_CHAIN',
            'sql_select_limit': '18446744073709551615',
            'group_concat_max_len': '16777216',
            'sql_safe_updates': 'OFF',
            'sql_big_selects': 'ON',
            'sql_auto_is_null': 'OFF',
            'unique_checks': 'ON',
            'foreign_key_checks': 'ON',
            'innodb_lock_wait_timeout': str(connections.LOCK_SECONDS),
            'lock_wait_timeout': str(connections.LOCK_SECONDS),
        }
        self.assertEqual(expected, {name: settings[name] for name in expected})
        self.assertIn('STRICT_ALL_TABLES', settings['sql_mode'])


class AnsiModeTest(MysqlTest):
    mode = 'ANSI'


@where.only_on('mariadb', reason='MySQL has no such mode.')
class OracleModeTest(MysqlTest):
    mode = 'ORACLE'


@where.only_on('mariadb', reason='MySQL has no such mode.')
class EmptyStringIsNullModeTest(MysqlTest):
    mode = 'EMPTY_STRING_IS_NULL'


class ManyModesTest(MysqlTest):
    mode = (
        'TRADITIONAL,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,ONLY_FULL_GROUP_BY,'
        'PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,'
        'NO_AUTO_VALUE_ON_ZERO,'
        + ('TIME_TRUNCATE_FRACTIONAL' if servers.engine() == 'mysql' else 'TIME_ROUND_FRACTIONAL')
    )
