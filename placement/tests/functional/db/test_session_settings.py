"""The service works with any session settings of servers, databases and users.

On PostgreSQL, the tests change the settings of the database. On MySQL and MariaDB, they use a
statement for each new connection, like `init_connect`, and `[placement_database] mysql_sql_mode`.
"""

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
CLASSES = ['CUSTOM_ONE', 'CUSTOM_TWO']
TRAITS = [f'CUSTOM_SESSION_{number}' for number in range(30)]


class Settings(testcase.RaceTestCase):
    """Reads and writes of each kind."""

    # The dialect with the settings; None for none.
    dialect: str | None = None

    def setUp(self) -> None:
        if not testcase.uses_server() or servers.admin_url().get_dialect().name != self.dialect:
            self.skipTest(f'this test needs a server with the dialect {self.dialect}')
        self.prepare()
        super().setUp()

    def prepare(self) -> None:
        """Set `connection` and `options`."""

    def test_requests(self) -> None:
        for kind, names in (('resource_classes', CLASSES), ('traits', TRAITS)):
            for name in names:
                self.send_ok('PUT', f'/{kind}/{name}')
            shown = self.send_ok('GET', f'/{kind}')[kind]
            stored = {one['name'] if isinstance(one, dict) else one for one in shown}
            self.assertLessEqual(set(names), stored)
        root, aggregates = str(uuid.uuid4()), sorted(str(uuid.uuid4()) for _ in range(30))
        self.send_ok('POST', '/resource_providers', {'name': NAME, 'uuid': root})
        self.assertEqual(409, self.send('POST', '/resource_providers', {'name': NAME}).status)
        child = self.make_provider({'VGPU': 4}, parent=root)
        inventory = {'total': 100, 'allocation_ratio': RATIO}
        for generation, (kind, value) in enumerate(
            (
                ('inventories', dict.fromkeys(('VCPU', *CLASSES), inventory)),
                ('traits', TRAITS),
                ('aggregates', aggregates),
            )
        ):
            path = f'/resource_providers/{root}/{kind}'
            self.send_ok('PUT', path, {'resource_provider_generation': generation, kind: value})
            shown = self.send_ok('GET', path)[kind]
            self.assertEqual(sorted(value), sorted(shown))
            if kind == 'inventories':
                self.assertEqual({RATIO}, {one['allocation_ratio'] for one in shown.values()})
        self.check_lists(root, child)
        self.check_claims(root)
        self.remove(root, child)

    def check_lists(self, root: str, child: str) -> None:
        every = self.send('GET', '/resource_providers')
        self.assertIn('GMT', every.headers['Last-Modified'])
        fields = ('name', 'parent_provider_uuid', 'root_provider_uuid')
        shown = {
            one['uuid']: tuple(map(one.get, fields)) for one in every.body['resource_providers']
        }
        expected = {root: (NAME, None, root), child: (f'provider-{child}', root, root)}
        self.assertEqual(expected, shown)
        # The capacity is 100 * 1.15, which is 114.99999999999999 in double precision.
        for query, found in (
            (f'resources=VCPU:114&required={TRAITS[0]},{TRAITS[29]}', [root]),
            (f'resources=VCPU:115&required={TRAITS[0]},{TRAITS[29]}', []),
            (f'in_tree={child}&required=!{TRAITS[0]}', [child]),
        ):
            providers = self.send_ok('GET', f'/resource_providers?{query}')['resource_providers']
            self.assertEqual(found, [one['uuid'] for one in providers], query)
        candidates = self.send_ok('GET', '/allocation_candidates?resources=VCPU:114,VGPU:4')
        self.assertEqual(1, len(candidates['allocation_requests']))
        summary = candidates['provider_summaries'][root]
        self.assertEqual(sorted(TRAITS), sorted(summary['traits']))
        self.assertEqual({'capacity': 114, 'used': 0}, summary['resources']['VCPU'])

    def check_claims(self, root: str) -> None:
        claim = testcase.claim
        first, second = str(uuid.uuid4()), str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{first}', claim({root: 60}, project=NAME))
        response = self.send('PUT', f'/allocations/{second}', claim({root: 55}))
        self.assertEqual(409, response.status)
        self.send_ok('POST', '/allocations', {second: claim({root: 54})})
        shown = self.send_ok('GET', f'/allocations/{first}')
        self.assertEqual(NAME, shown['project_id'])
        self.assertEqual({'VCPU': 60}, shown['allocations'][root]['resources'])
        self.assertEqual(114, self.used(root))
        usages = self.send_ok('GET', '/usages?project_id=project')['usages']
        self.assertEqual({'INSTANCE': {'VCPU': 54, 'consumer_count': 1}}, usages)
        self.send_ok('PUT', f'/allocations/{second}', claim({root: 1}, 1))
        for consumer in (first, second):
            self.send_ok('DELETE', f'/allocations/{consumer}')
        self.assertEqual(0, self.used(root))

    def remove(self, root: str, child: str) -> None:
        self.assertEqual(409, self.send('DELETE', f'/resource_providers/{root}').status)
        for path in (
            *(f'/resource_providers/{own}' for own in (child, root)),
            *(f'/resource_classes/{name}' for name in CLASSES),
            *(f'/traits/{name}' for name in TRAITS),
        ):
            self.send_ok('DELETE', path)
        self.audit()

    def test_duplicate(self) -> None:
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
    dialect = 'postgresql'

    def prepare(self) -> None:
        self.connection = servers.create()
        url = sa.make_url(self.connection)
        engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        with engine.connect() as conn:
            for name, value in POSTGRESQL.items():
                conn.exec_driver_sql(f"ALTER DATABASE {url.database} SET {name} = '{value}'")

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


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class MysqlTest(Settings):
    """An SQL mode that is not strict."""

    mode = ''

    dialect = 'mysql'

    def prepare(self) -> None:
        self.mariadb = servers.engine() == 'mariadb'
        # Only MySQL and recent releases of MariaDB have `transaction_isolation`.
        self.isolation = 'tx_isolation' if self.mariadb else 'transaction_isolation'
        values = ', '.join(f'SESSION {name} = {value}' for name, value in MYSQL.items())
        url = sa.make_url(servers.create())
        url = url.update_query_dict({'init_command': f'SET {values}'})
        self.connection = url.render_as_string(hide_password=False)
        self.options = {'mysql_sql_mode': self.mode if self.mariadb else self.mode_of_mysql()}

    def mode_of_mysql(self) -> str:
        """Return the mode to use on MySQL, which has other modes than MariaDB."""
        return self.mode

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
