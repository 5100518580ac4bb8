"""Databases and connections of MariaDB and MySQL whose character set has at most three bytes."""

from typing import Any
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.tests import where, worlds
from placement.tests.functional.collations import base
from placement.tests.functional.races.testcase import claim
from placement.tests.statements import Statement, recorded
from placement.tests.worlds import rows

NUMBER = 400  # of rows in each of the large tables
HOSTS, AGGREGATES = ([worlds.uuid_of(f'{kind}{n}') for n in range(NUMBER)] for kind in 'hA')
CONSUMERS = [
    worlds.Consumer(f'c{n}', {f'h{n}': {'VCPU': 1}}, f'TYPE_{n}', f'p{n}', f'u{n}')
    for n in range(NUMBER)
]


@where.only_on('mariadb', 'mysql', reason='Only MySQL and MariaDB have character sets of tables.')
@where.also_on_mysql('MySQL has collations of its own.')
class FourBytePlansTest(base.CollationTest):
    """No statement scans a large table.

    The servers do not use an index if they have to convert the column to another character set.
    """

    character_set = 'utf8mb4'
    charset = 'utf8mb4'

    def test_no_statement_scans_a_large_table(self):
        inventory = {'VCPU': worlds.inventory(100)}
        hosts = (
            worlds.Host(f'h{n}', None, inventory, (f'T{n}',), (f'A{n}',)) for n in range(NUMBER)
        )
        world, engine = (
            worlds.World(tuple(hosts)).claimed(*CONSUMERS),
            db_api.get_placement_engine(),
        )
        rows.fill(engine, world)
        with engine.begin() as conn:
            for table in rows.TABLES:
                conn.exec_driver_sql(f'ANALYZE TABLE {table.name}').all()
        with recorded(engine) as statements:
            self.read()
            self.write()
        self.assertLess(50, len(statements))
        with engine.connect() as conn:
            scans = [scan for one in statements for scan in scans_of(conn, one)]
            self.assertEqual([], scans)
            converted = 'SELECT id FROM projects WHERE CONVERT(external_id USING latin1) = %s'
            self.assertEqual(1, len(scans_of(conn, Statement(converted, ('p0',)))))

    def read(self) -> None:
        """Send requests whose statements compare names and UUIDs."""
        first, second, *_ = HOSTS
        for query in (
            *(f'resource_providers?{key}={first}' for key in ('uuid', 'in_tree')),
            'resource_providers?name=h0',
            f'allocation_candidates?resources=VCPU:1&in_tree={second}&limit=2',
            f'allocation_candidates?resources=VCPU:1&member_of={AGGREGATES[1]}'
            '&required=CUSTOM_T1&limit=2',
            'usages?project_id=p0&user_id=u0&consumer_type=TYPE_0',
            f'allocations/{CONSUMERS[0].uuid}',
            *(
                f'resource_providers/{first}/{kind}'
                for kind in ('usages', 'traits', 'aggregates', 'inventories')
            ),
        ):
            self.send_ok('GET', f'/{query}')

    def write(self) -> None:
        """Write a provider, and claim for new consumers and for other spellings of UUIDs."""
        first, second, *_ = HOSTS
        path = f'/resource_providers/{first}'
        self.send_ok('PUT', path, {'name': 'renamed'})
        aggregates = [AGGREGATES[1], AGGREGATES[2].upper(), str(uuid.uuid4())]
        body: dict[str, Any] = {'resource_provider_generation': self.provider(first)['generation']}
        self.send_ok('PUT', f'{path}/aggregates', {**body, 'aggregates': aggregates})
        body['resource_provider_generation'] += 1
        self.send_ok('PUT', f'{path}/traits', {**body, 'traits': ['CUSTOM_T2']})
        stored = [consumer.uuid for consumer in CONSUMERS[:3]]
        for consumers in (
            *([str(uuid.uuid4())], [stored[1]]),
            [stored[2].upper(), stored[0], str(uuid.uuid4())],
        ):
            body = {
                consumer: claim(
                    {first: 1, second.upper(): 1},
                    1 if consumer.lower() in stored else None,
                    project=consumer,
                )
                for consumer in consumers
            }
            self.send_ok('POST', '/allocations', body)
        self.send_ok('DELETE', f'/allocations/{stored[0]}')


class ThreeBytePlansTest(FourBytePlansTest):
    character_set = 'utf8'


class ThreeByteConnectionPlansTest(FourBytePlansTest):
    charset = 'utf8'


class ThreeByteDatabaseAndConnectionPlansTest(FourBytePlansTest):
    character_set = 'utf8'
    charset = 'utf8'


def scans_of(conn: sa.Connection, statement: Statement) -> list[str]:
    """Return a text for each full scan of a large table in the plan of a statement."""
    if statement.verb == 'INSERT':
        return []
    # By default, MySQL describes the plan in a text.
    explain = f'EXPLAIN FORMAT=TRADITIONAL {statement.text}'
    plan = conn.exec_driver_sql(explain, statement.parameters).mappings()
    return [
        f'{row["type"]} {row["table"]} ({row["rows"]} rows): {statement.text}'
        for row in plan
        if row['type'] in ('ALL', 'index') and int(row['rows'] or 0) >= NUMBER // 2
    ]
