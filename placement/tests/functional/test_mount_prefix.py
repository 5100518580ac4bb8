"""The service at a URL prefix, as in most deployments."""

from oslotest import base
import requests

from placement.tests import where
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures import placement as placement_fixture
from placement.tests.waiting import LONGEST

HOST = '5e0c9a6f-0000-4000-8000-000000000001'


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class MountPrefixTest(base.BaseTestCase):
    """`PlacementFixture` mounts the service at `/placement`."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        self.endpoint = self.useFixture(placement_fixture.PlacementFixture()).endpoint

    def request(self, method: str, path: str, **options: object) -> requests.Response:
        headers = {'x-auth-token': 'admin', 'openstack-api-version': 'placement latest'}
        return requests.request(
            method,
            self.endpoint + path,
            headers=headers,
            timeout=LONGEST,
            **options,  # type: ignore[arg-type]  # options of any type
        )

    def test_locations_have_host_and_prefix(self) -> None:
        response = self.request('POST', '/resource_providers', json={'name': 'host', 'uuid': HOST})
        self.assertEqual(f'{self.endpoint}/resource_providers/{HOST}', response.headers['location'])
        for path in ('/resource_classes/CUSTOM_A', '/traits/CUSTOM_A'):
            response = self.request('PUT', path)
            self.assertEqual(self.endpoint + path, response.headers['location'])

    def test_links_have_the_prefix_only(self) -> None:
        self.request('POST', '/resource_providers', json={'name': 'host', 'uuid': HOST})
        path = f'/resource_providers/{HOST}'
        for document in (
            self.request('GET', path).json(),
            self.request('GET', '/resource_providers').json()['resource_providers'][0],
        ):
            rels = ['', 'inventories', 'usages', 'aggregates', 'traits', 'allocations']
            self.assertEqual(
                [f'/placement{path}/{rel}'.rstrip('/') for rel in rels],
                [link['href'] for link in document['links']],
            )
        document = self.request('GET', '/resource_classes/VCPU').json()
        self.assertEqual('/placement/resource_classes/VCPU', document['links'][0]['href'])

    def test_the_root_is_below_the_prefix(self) -> None:
        for path in ('', '/'):
            response = self.request('GET', path)
            self.assertEqual(200, response.status_code)
            self.assertEqual('v1.0', response.json()['versions'][0]['id'])

    def test_unknown_paths_are_below_the_prefix(self) -> None:
        self.assertEqual(404, self.request('GET', '/placement').status_code)
