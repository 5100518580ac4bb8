"""The time in the header Last-Modified."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base
from placement.tests.functional.base import claim

CREATED = datetime(2001, 1, 1, tzinfo=UTC)
UPDATED = datetime(2002, 2, 2, tzinfo=UTC)
CONSUMER = '1a570000-0000-4000-8000-0000000000c1'
NOBODY = '1a570000-0000-4000-8000-0000000000c9'
TRAIT = 'CUSTOM_OLD'


class LastModifiedTest(base.TestCase):
    """All objects of a host were created long ago. The host and its inventory were updated."""

    def setUp(self):
        super().setUp()
        self.uuid = self.make_provider('host', {'VCPU': 8})
        self.host = f'/resource_providers/{self.uuid}'
        self.send_ok('PUT', f'/traits/{TRAIT}')
        body: dict[str, Any] = {'resource_provider_generation': 1, 'traits': [TRAIT]}
        self.send_ok('PUT', f'{self.host}/traits', body)
        self.send_ok('PUT', f'/allocations/{CONSUMER}', claim({self.uuid: {'VCPU': 1}}))
        tables = (models.resource_providers, models.inventories)
        created, updated = (time.replace(tzinfo=None) for time in (CREATED, UPDATED))
        for table in (*tables, models.traits, models.resource_classes, models.allocations):
            times = {'created_at': created, 'updated_at': updated if table in tables else None}
            statement = sa.update(table).values(times)
            db_api.write(lambda conn, statement=statement: conn.execute(statement))

    def test_times(self):
        """The time of the newest change, the creation time, or the current time."""
        host, traits = self.host, {'resource_provider_generation': 3, 'traits': [TRAIT]}
        for time, requests in (
            (UPDATED, ('/resource_providers', host)),
            (UPDATED, (f'{host}/inventories', f'{host}/inventories/VCPU')),
            (CREATED, ('/resource_classes', '/resource_classes/VCPU', '/traits')),
            (CREATED, (f'/traits/{TRAIT}', f'{host}/traits', f'{host}/allocations')),
            (CREATED, (f'/allocations/{CONSUMER}', ('PUT', f'/traits/{TRAIT}', None))),
            (CREATED, [('PUT', f'{host}/traits', traits)]),
            (None, ('/', f'{host}/usages', '/usages?project_id=p', f'{host}/aggregates')),
            (None, ['/allocation_candidates?resources=VCPU:1']),
        ):
            for request in requests:
                self.check(time, *(request if isinstance(request, tuple) else ('GET', request)))

    def test_the_newest_of_several_inventories(self):
        self.send_ok('POST', f'{self.host}/inventories', {'resource_class': 'DISK_GB', 'total': 1})
        new = sa.update(models.inventories).where(models.inventories.c.total == 1)
        older = new.values(created_at=CREATED.replace(tzinfo=None), updated_at=None)
        db_api.write(lambda conn: conn.execute(older))
        self.check(UPDATED, 'GET', f'{self.host}/inventories')

    def check(self, expected: datetime | None, method: str, path: str, body: Any = None) -> None:
        response = self.send(method, path, body)
        self.assertLess(response.status_code, 300, response.text)
        time = parsedate_to_datetime(response.headers['last-modified'])
        if expected is None:
            self.assertLess(datetime.now(UTC) - time, timedelta(hours=1), path)
        else:
            self.assertEqual(expected, time, path)

    def test_changes_have_the_current_time(self):
        for generation, (path, body) in enumerate(
            (
                ('/inventories/VCPU', {'total': 8}),
                ('/inventories', {'inventories': {'VCPU': {'total': 8}}}),
                ('/aggregates', {'aggregates': []}),
                ('/traits', {'traits': []}),
            ),
            3,
        ):
            body = {'resource_provider_generation': generation, **body}
            self.send_ok('PUT', self.host + path, body)
            self.check(None, 'GET', self.host)
        self.send_ok('POST', f'{self.host}/inventories', {'resource_class': 'PCPU', 'total': 1})
        self.check(None, 'GET', self.host)
        self.check(None, 'PUT', self.host, {'name': 'renamed'})
        self.check(None, 'POST', '/resource_providers', {'name': 'other'})

    def test_the_current_time_if_there_are_no_objects(self):
        other = f'/resource_providers/{self.make_provider("other")}'
        kinds = ('inventories', 'traits', 'allocations')
        empty = ('/resource_providers?name=nobody', '/traits?name=in:NOTHING')
        for path in (*empty, *(f'{other}/{kind}' for kind in kinds), f'/allocations/{NOBODY}'):
            self.check(None, 'GET', path)
