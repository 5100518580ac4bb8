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
        for table in (*tables, models.traits, models.resource_classes, models.allocations):
            updated = UPDATED if table in tables else None
            times = sa.update(table).values(
                created_at=CREATED.replace(tzinfo=None),
                updated_at=updated and updated.replace(tzinfo=None),
            )
            db_api.write(lambda conn, statement=times: conn.execute(statement))

    def last_modified(self, method: str, path: str, body: Any = None) -> datetime:
        response = self.send(method, path, body)
        self.assertLess(response.status_code, 300, response.text)
        return parsedate_to_datetime(response.headers['last-modified'])

    def assert_now(self, *requests: tuple[str, str, Any]) -> None:
        for request in requests:
            time = self.last_modified(*request)
            self.assertLess(datetime.now(UTC) - time, timedelta(hours=1), request)

    def test_the_time_of_the_newest_change(self):
        for path in ('/resource_providers', self.host, f'{self.host}/inventories'):
            self.assertEqual(UPDATED, self.last_modified('GET', path), path)
        self.assertEqual(UPDATED, self.last_modified('GET', f'{self.host}/inventories/VCPU'))

    def test_the_creation_time(self):
        for path in (
            '/resource_classes',
            '/resource_classes/VCPU',
            '/traits',
            f'/traits/{TRAIT}',
            f'{self.host}/traits',
            f'{self.host}/allocations',
            f'/allocations/{CONSUMER}',
        ):
            self.assertEqual(CREATED, self.last_modified('GET', path), path)
        self.assertEqual(CREATED, self.last_modified('PUT', f'/traits/{TRAIT}'))
        body = {'resource_provider_generation': 3, 'traits': [TRAIT]}
        self.assertEqual(CREATED, self.last_modified('PUT', f'{self.host}/traits', body))

    def test_the_current_time(self):
        inventory = {'resource_provider_generation': 3, 'total': 8}
        inventories = {'resource_provider_generation': 4, 'inventories': {'VCPU': {'total': 8}}}
        self.assert_now(
            ('GET', '/', None),
            ('GET', f'{self.host}/usages', None),
            ('GET', '/usages?project_id=p', None),
            ('GET', f'{self.host}/aggregates', None),
            ('GET', '/allocation_candidates?resources=VCPU:1', None),
            ('PUT', self.host, {'name': 'renamed'}),
            ('PUT', f'{self.host}/inventories/VCPU', inventory),
            ('PUT', f'{self.host}/inventories', inventories),
            ('POST', f'{self.host}/inventories', {'resource_class': 'DISK_GB', 'total': 1}),
            (
                'PUT',
                f'{self.host}/aggregates',
                {'resource_provider_generation': 6, 'aggregates': []},
            ),
            ('POST', '/resource_providers', {'name': 'other'}),
        )

    def test_the_current_time_if_there_are_no_objects(self):
        other = f'/resource_providers/{self.make_provider("other")}'
        self.assert_now(
            ('GET', '/resource_providers?name=nobody', None),
            ('GET', '/traits?name=in:NOTHING', None),
            ('GET', f'{other}/inventories', None),
            ('GET', f'{other}/traits', None),
            ('GET', f'{other}/allocations', None),
            ('GET', f'/allocations/{NOBODY}', None),
        )

    def test_a_change_of_the_generation_changes_the_time(self):
        body = {'resource_provider_generation': 3, 'traits': []}
        self.send_ok('PUT', f'{self.host}/traits', body)
        self.assert_now(('GET', self.host, None))
