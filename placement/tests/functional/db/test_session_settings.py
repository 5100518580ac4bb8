"""The service works with any session settings of servers, databases and users.

On PostgreSQL, the tests change the settings of the database. On MySQL and MariaDB, they use a
statement for each new connection, like `init_connect`, and `[placement_database] mysql_sql_mode`.
"""

from typing import Any
import unittest
import uuid

import sqlalchemy as sa

from placement.db import connections
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.tests import servers, where
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
RATIO = 1.15
TRAITS = [f'CUSTOM_SESSION_{number}' for number in range(30)]


class Settings(testcase.RaceTestCase):
    """Reads and writes of each kind."""

    def check_all(self) -> None:
        self.create_names()
        root, child = self.create_tree()
        self.check_lists(root, child)
        self.check_candidates(root, child)
        self.check_claims(root)
        self.check_failures(root, child)
        self.remove(root, child)

    def create_names(self) -> None:
        for name in ('CUSTOM_ONE', 'CUSTOM_TWO'):
            self.send_ok('POST', '/resource_classes', {'name': name})
        self.assertEqual(409, self.send('POST', '/resource_classes', {'name': 'CUSTOM_ONE'}).status)
        classes = self.send_ok('GET', '/resource_classes')['resource_classes']
        self.assertLessEqual({'VCPU', 'CUSTOM_ONE', 'CUSTOM_TWO'}, {one['name'] for one in classes})
        for name in TRAITS:
            self.send_ok('PUT', f'/traits/{name}')
        shown = self.send_ok('GET', '/traits?name=startswith:CUSTOM_SESSION_')['traits']
        self.assertEqual(sorted(TRAITS), sorted(shown))

    def create_tree(self) -> tuple[str, str]:
        root = str(uuid.uuid4())
        self.send_ok('POST', '/resource_providers', {'name': NAME, 'uuid': root})
        child = self.make_provider({'VGPU': 4}, parent=root)
        own = f'/resource_providers/{root}'
        inventories = {
            name: {'total': 100, 'allocation_ratio': RATIO}
            for name in ('VCPU', 'MEMORY_MB', 'CUSTOM_ONE', 'CUSTOM_TWO')
        }
        body: dict[str, Any] = {'resource_provider_generation': 0, 'inventories': inventories}
        self.send_ok('PUT', f'{own}/inventories', body)
        shown = self.send_ok('GET', f'{own}/inventories')['inventories']
        self.assertEqual(RATIO, shown['VCPU']['allocation_ratio'])
        self.send_ok('PUT', f'{own}/traits', {'resource_provider_generation': 1, 'traits': TRAITS})
        self.assertEqual(sorted(TRAITS), sorted(self.send_ok('GET', f'{own}/traits')['traits']))
        aggregates = sorted(str(uuid.uuid4()) for _ in range(30))
        body = {'resource_provider_generation': 2, 'aggregates': aggregates}
        self.send_ok('PUT', f'{own}/aggregates', body)
        self.assertEqual(aggregates, sorted(self.send_ok('GET', f'{own}/aggregates')['aggregates']))
        return root, child

    def check_lists(self, root: str, child: str) -> None:
        every = self.send('GET', '/resource_providers')
        self.assertIn('GMT', every.headers['Last-Modified'])
        shown = {one['uuid']: one for one in every.body['resource_providers']}
        self.assertEqual({root, child}, set(shown))
        self.assertEqual(NAME, shown[root]['name'])
        self.assertEqual(
            (root, root), (shown[child]['parent_provider_uuid'], shown[child]['root_provider_uuid'])
        )
        # The capacity is 100 * 1.15, which is 114.99999999999999 in double precision.
        for amount, expected in ((114, [root]), (115, [])):
            path = f'/resource_providers?resources=VCPU:{amount}&required={TRAITS[0]},{TRAITS[29]}'
            shown = self.send_ok('GET', path)['resource_providers']
            self.assertEqual(expected, [one['uuid'] for one in shown])
        shown = self.send_ok('GET', f'/resource_providers?in_tree={child}&required=!{TRAITS[0]}')
        self.assertEqual([child], [one['uuid'] for one in shown['resource_providers']])

    def check_candidates(self, root: str, child: str) -> None:
        shown = self.send_ok('GET', '/allocation_candidates?resources=VCPU:114,VGPU:4')
        self.assertEqual(1, len(shown['allocation_requests']))
        summaries = shown['provider_summaries']
        self.assertEqual(sorted(TRAITS), sorted(summaries[root]['traits']))
        self.assertEqual({'capacity': 114, 'used': 0}, summaries[root]['resources']['VCPU'])
        self.assertEqual(root, summaries[child]['parent_provider_uuid'])

    def check_claims(self, root: str) -> None:
        first, second = str(uuid.uuid4()), str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{first}', testcase.claim({root: 60}, project=NAME))
        self.assertEqual(
            409, self.send('PUT', f'/allocations/{second}', testcase.claim({root: 55})).status
        )
        self.send_ok('POST', '/allocations', {second: testcase.claim({root: 54})})
        shown = self.send_ok('GET', f'/allocations/{first}')
        self.assertEqual(NAME, shown['project_id'])
        self.assertEqual({'VCPU': 60}, shown['allocations'][root]['resources'])
        self.assertEqual(114, self.used(root))
        usages = self.send_ok('GET', '/usages?project_id=project')['usages']
        self.assertEqual({'INSTANCE': {'VCPU': 54, 'consumer_count': 1}}, usages)
        self.send_ok('PUT', f'/allocations/{second}', testcase.claim({root: 1}, 1))
        for consumer in (first, second):
            self.send_ok('DELETE', f'/allocations/{consumer}')
        self.assertEqual(0, self.used(root))

    def check_failures(self, root: str, child: str) -> None:
        """The service reports a rejected value, and stores no truncated or duplicate value."""
        body = {'name': NAME, 'uuid': str(uuid.uuid4())}
        self.assertEqual(409, self.send('POST', '/resource_providers', body).status)
        generation = self.provider(child)['generation']
        body = {'resource_provider_generation': generation, 'aggregates': ['urn:uuid:' + root]}
        path = f'/resource_providers/{child}/aggregates'
        self.assertEqual(400, self.send('PUT', path, body).status)

    def remove(self, root: str, child: str) -> None:
        self.assertEqual(409, self.send('DELETE', f'/resource_providers/{root}').status)
        self.send_ok('DELETE', f'/resource_providers/{child}')
        self.send_ok('DELETE', f'/resource_providers/{root}')
        for path in ('/resource_classes/CUSTOM_ONE', '/resource_classes/CUSTOM_TWO'):
            self.send_ok('DELETE', path)
        for name in TRAITS:
            self.send_ok('DELETE', f'/traits/{name}')
        self.assertEqual([], self.send_ok('GET', '/resource_providers')['resource_providers'])
        self.audit()

    def check_duplicate(self) -> None:
        """The transaction is retried after a duplicate key, whatever the language of messages."""
        attempts: list[sa.Connection] = []

        def work(conn: sa.Connection) -> None:
            attempts.append(conn)
            if len(attempts) == 1:
                conn.execute(sa.insert(models.traits), [{'name': 'CUSTOM_SAME'}] * 2)

        db_engine.write(work)
        self.assertEqual(2, len(attempts))

    def settings(self, statement: str) -> dict[str, str]:
        """The settings of a connection of the service."""
        with db_engine.get_placement_engine().connect() as conn:
            return {row[0]: str(row[1]) for row in conn.exec_driver_sql(statement)}


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class PostgresqlTest(Settings):
    def setUp(self) -> None:
        skip_unless('postgresql')
        self.connection = servers.create()
        url = sa.make_url(self.connection)
        engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        with engine.connect() as conn:
            for name, value in POSTGRESQL.items():
                conn.exec_driver_sql(f"ALTER DATABASE {url.database} SET {name} = '{value}'")
        super().setUp()

    def test_requests(self) -> None:
        self.check_all()

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

    def test_duplicate(self) -> None:
        self.check_duplicate()


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class MysqlTest(Settings):
    """An SQL mode that is not strict."""

    mode = ''

    def setUp(self) -> None:
        skip_unless('mysql')
        self.mariadb = servers.engine() == 'mariadb'
        # Only MySQL and recent releases of MariaDB have `transaction_isolation`.
        self.isolation = 'tx_isolation' if self.mariadb else 'transaction_isolation'
        values = ', '.join(f'SESSION {name} = {value}' for name, value in MYSQL.items())
        url = sa.make_url(servers.create())
        url = url.update_query_dict({'init_command': f'SET {values}'})
        self.connection = url.render_as_string(hide_password=False)
        self.options = {'mysql_sql_mode': self.mode if self.mariadb else self.mode_of_mysql()}
        super().setUp()

    def mode_of_mysql(self) -> str:
        """Return the mode to use on MySQL, which has other modes than MariaDB."""
        return self.mode

    def test_requests(self) -> None:
        self.check_all()

    def test_settings(self) -> None:
        settings = self.settings('SHOW SESSION VARIABLES')
        # The settings of this test are in effect.
        self.assertEqual('+12:00', settings['time_zone'])
        self.assertEqual('de_DE', settings['lc_messages'])
        expected = {
            self.isolation: 'READ-COMMITTED',
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

    def test_duplicate(self) -> None:
        self.check_duplicate()


class AnsiModeTest(MysqlTest):
    mode = 'ANSI'


class OnlyMariadb(MysqlTest):
    def mode_of_mysql(self) -> str:
        raise unittest.SkipTest(f'MySQL has no mode {self.mode}')


class OracleModeTest(OnlyMariadb):
    mode = 'ORACLE'


class EmptyStringIsNullModeTest(OnlyMariadb):
    mode = 'EMPTY_STRING_IS_NULL'


class ManyModesTest(MysqlTest):
    mode = (
        'TRADITIONAL,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,ONLY_FULL_GROUP_BY,'
        'PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,'
        'NO_AUTO_VALUE_ON_ZERO,TIME_ROUND_FRACTIONAL'
    )

    def mode_of_mysql(self) -> str:
        return self.mode.replace('ROUND', 'TRUNCATE')


def skip_unless(dialect: str) -> None:
    """Skip the test unless this run has a server with the dialect."""
    if not testcase.uses_server() or servers.admin_url().get_dialect().name != dialect:
        raise unittest.SkipTest(f'this test needs a server with the dialect {dialect}')
