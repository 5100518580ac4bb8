"""Databases and connections of MariaDB and MySQL whose character set has at most three bytes."""

from typing import Any
from urllib import parse
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import where
from placement.tests.functional.collations import base
from placement.tests.functional.races.testcase import claim
from placement.tests.statements import Statement, recorded

EMOJI = 'host\N{GRINNING FACE}'
QUOTED = parse.quote(EMOJI)
ROWS = 400  # in each of the large tables


@where.also_on_mysql('MySQL has collations of its own.')
class FourByteTest(base.CollationTest):
    """Both the tables and the connection have four-byte characters."""

    engine = 'mysql'
    character_set = 'utf8mb4'
    charset = 'utf8mb4'
    # The status of a request that writes a four-byte character, and of one that searches for it.
    written, searched = 200, 200

    def test_names_of_providers(self):
        created = self.send('POST', '/resource_providers', {'name': EMOJI})
        self.assertEqual(self.written, created.status, created.body)
        provider = self.make_provider()
        renamed = self.send('PUT', f'/resource_providers/{provider}', {'name': f'{EMOJI} 2'})
        self.assertEqual(self.written, renamed.status, renamed.body)
        shown = self.send('GET', f'/resource_providers?name={QUOTED}')
        self.assertEqual(self.searched, shown.status, shown.body)
        if self.searched == 200:
            expected = [EMOJI] if self.written == 200 else []
            self.assertEqual(expected, [one['name'] for one in shown.body['resource_providers']])

    def test_projects_and_users(self):
        provider = self.make_provider({'VCPU': 9})
        body = claim({provider: 1}, project=EMOJI)
        claimed = self.send('PUT', f'/allocations/{uuid.uuid4()}', body)
        self.assertEqual(204 if self.written == 200 else self.written, claimed.status, claimed.body)
        for query in (f'project_id={QUOTED}', f'project_id=project&user_id={QUOTED}'):
            shown = self.send('GET', f'/usages?{query}')
            self.assertEqual(self.searched, shown.status, shown.body)


class OldDatabaseTest(FourByteTest):
    character_set = 'utf8'
    written, searched = 400, 400


class OldDatabaseAndUrlTest(FourByteTest):
    character_set = 'utf8'
    charset = 'utf8'
    written, searched = 400, 200


@where.also_on_mysql('MySQL has collations of its own.')
class OldUrlTest(FourByteTest):
    charset = 'utf8'
    written, searched = 400, 400

    def test_names_that_another_process_wrote(self):
        provider = self.make_provider()
        url = db_api.get_placement_engine().url.render_as_string(hide_password=False)
        engine = sa.create_engine(base.with_charset(url, 'utf8mb4'), poolclass=sa.NullPool)
        with engine.begin() as conn:
            conn.execute(sa.update(models.resource_providers).values(name=EMOJI))
        self.assertEqual('host?', self.provider(provider)['name'])


@where.also_on_mysql('MySQL has collations of its own.')
class FourBytePlansTest(base.CollationTest):
    """No statement scans a large table.

    The servers do not use an index if they have to convert the column to another character set.
    """

    engine = 'mysql'
    character_set = 'utf8mb4'
    charset = 'utf8mb4'

    def test_no_statement_scans_a_large_table(self):
        uuids = self.fill()
        with recorded(db_api.get_placement_engine()) as statements:
            self.make_requests(uuids)
        self.assertLess(50, len(statements))
        with db_api.get_placement_engine().connect() as conn:
            scans = [scan for one in statements for scan in scans_of(conn, one)]
            self.assertEqual([], scans)
            converted = 'SELECT id FROM projects WHERE CONVERT(external_id USING latin1) = %s'
            self.assertEqual(1, len(scans_of(conn, Statement(converted, (uuids[0],)))))

    def fill(self) -> list[str]:
        """Insert rows into all tables with names; return the names."""
        uuids = [str(uuid.uuid4()) for _ in range(ROWS)]
        with db_api.get_placement_engine().begin() as conn:
            for table in LARGE:
                rows = [_row(table, number, text) for number, text in enumerate(uuids, 1_000_000)]
                conn.execute(sa.insert(table), rows)
            for table in LARGE:
                conn.exec_driver_sql(f'ANALYZE TABLE {table.name}').all()
        return uuids

    def make_requests(self, uuids: list[str]) -> None:
        """Make requests whose statements compare names and UUIDs."""
        first, second, third, *_ = uuids
        path = f'/resource_providers/{first}'
        for query in (
            *(f'resource_providers?{key}={first}' for key in ('name', 'uuid', 'in_tree')),
            f'allocation_candidates?resources=VCPU:1&in_tree={second}&limit=2',
            f'allocation_candidates?resources=VCPU:1&member_of={second}'
            f'&required=CUSTOM_{_trait(second)}&limit=2',
            f'usages?project_id={first}&user_id={first}&consumer_type=CUSTOM_{_trait(first)}',
            f'allocations/{first}',
            *(f'{path[1:]}/{kind}' for kind in ('usages', 'traits', 'aggregates', 'inventories')),
        ):
            self.send_ok('GET', f'/{query}')
        self.send_ok('PUT', path, {'name': 'renamed'})
        generation = self.provider(first)['generation']
        body: dict[str, Any] = {'resource_provider_generation': generation}
        aggregates = [second, third.upper(), str(uuid.uuid4())]
        self.send_ok('PUT', f'{path}/aggregates', {**body, 'aggregates': aggregates})
        body['resource_provider_generation'] += 1
        self.send_ok('PUT', f'{path}/traits', {**body, 'traits': [f'CUSTOM_{_trait(third)}']})
        self.claim(uuids)

    def claim(self, uuids: list[str]) -> None:
        """Claim for new consumers, and for existing ones with another spelling of their UUIDs."""
        first, second, third, *_ = uuids
        for consumers in ([str(uuid.uuid4())], [second], [third.upper(), first, str(uuid.uuid4())]):
            body = {
                consumer: claim(
                    {first: 1, second.upper(): 1},
                    1 if consumer.lower() in uuids else None,
                    project=consumer,
                )
                for consumer in consumers
            }
            self.send_ok('POST', '/allocations', body)
        self.send_ok('DELETE', f'/allocations/{first}')


class ThreeBytePlansTest(FourBytePlansTest):
    character_set = 'utf8'


class ThreeByteConnectionPlansTest(FourBytePlansTest):
    charset = 'utf8'


class ThreeByteDatabaseAndConnectionPlansTest(FourBytePlansTest):
    character_set = 'utf8'
    charset = 'utf8'


LARGE = (
    models.projects,
    models.users,
    models.consumer_types,
    models.consumers,
    models.resource_providers,
    models.placement_aggregates,
    models.traits,
    models.inventories,
    models.allocations,
    models.resource_provider_aggregates,
    models.resource_provider_traits,
)


def _trait(text: str) -> str:
    return text.replace('-', '_').upper()


def _row(table: sa.Table, number: int, text: str) -> dict[str, Any]:
    """Return a row of a table: a provider, and a consumer with an allocation."""
    values = {
        'id': number,
        'uuid': text,
        'external_id': text,
        'name': text if table is models.resource_providers else f'CUSTOM_{_trait(text)}',
        'consumer_id': text,
        'generation': 1,
        'root_provider_id': number,
        'resource_class_id': 0,
        'used': 1,
        'total': 100,
        'reserved': 0,
        'min_unit': 1,
        'max_unit': 100,
        'step_size': 1,
        'allocation_ratio': 1.0,
        **{
            f'{name}_id': number
            for name in (
                'project',
                'user',
                'consumer_type',
                'resource_provider',
                'aggregate',
                'trait',
            )
        },
    }
    return {name: value for name, value in values.items() if name in table.c}


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
        if row['type'] in ('ALL', 'index') and int(row['rows'] or 0) >= ROWS // 2
    ]
