"""The API client that calls the application within its own process."""

from keystoneauth1 import adapter, exceptions
import requests

from placement import direct
from placement.microversion import MAX_VERSION
from placement.tests import where
from placement.tests.functional import base


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class DirectTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.service.conf_fixture.conf

    def test_requests_and_responses(self):
        with direct.PlacementDirect(self.conf) as client:
            self.assertIsInstance(client, adapter.Adapter)
            response = client.post(
                '/resource_providers', json={'name': 'a name'}, microversion='1.20'
            )
            self.assertEqual(200, response.status_code)
            uuid = response.json()['uuid']
            response = client.get('/resource_providers', params={'name': 'a name'})
            self.assertEqual([uuid], [rp['uuid'] for rp in response.json()['resource_providers']])
            self.assertEqual('placement 1.0', response.headers['openstack-api-version'])
            self.assertEqual(204, client.delete(f'/resource_providers/{uuid}').status_code)

    def test_urls_have_the_mount_point(self):
        with direct.PlacementDirect(self.conf) as client:
            self.assertRegex(client.get_endpoint(), r'^http://[0-9a-f-]{36}/placement$')
            response = client.post('/resource_providers', json={'name': 'a'})
            location = response.headers['location']
            self.assertRegex(location, rf'^{client.get_endpoint()}/resource_providers/')
            provider = client.get(location.removeprefix(client.get_endpoint())).json()
            for link in provider['links']:
                self.assertTrue(link['href'].startswith('/placement/resource_providers/'), link)
            self.assertEqual(200, client.get('').status_code)
            self.assertEqual(404, client.get('/placement').status_code)

    def test_errors_do_not_raise(self):
        with direct.PlacementDirect(self.conf) as client:
            self.assertEqual(404, client.get('/nowhere').status_code)
            self.assertEqual(400, client.post('/resource_providers', json=[]).status_code)

    def test_the_latest_microversion_unless_a_call_names_one(self):
        with direct.PlacementDirect(self.conf, latest_microversion=True) as client:
            latest = client.get('/resource_providers').headers['openstack-api-version']
            named = client.get('/resource_providers', microversion='1.3')
        self.assertEqual(f'placement {MAX_VERSION}', latest)
        self.assertEqual('placement 1.3', named.headers['openstack-api-version'])

    def test_reshaping_with_the_default_policy(self):
        self.service.conf_fixture.config(group='oslo_policy', enforce_new_defaults=True)
        provider = self.make_provider('host', {'VCPU': 8})
        inventories = {
            provider: {
                'resource_provider_generation': 1,
                'inventories': {'VCPU': {'total': 4}},
            }
        }
        with direct.PlacementDirect(self.conf, latest_microversion=True) as client:
            body = {'inventories': inventories, 'allocations': {}}
            response = client.post('/reshaper', json=body)
        self.assertEqual(204, response.status_code, response.text)

    def test_authentication_is_disabled(self):
        self.service.conf_fixture.config(group='api', auth_strategy='keystone')
        with direct.PlacementDirect(self.conf) as client:
            self.assertEqual('noauth2', self.conf.api.auth_strategy)
            self.assertEqual(200, client.get('/resource_providers').status_code)

    def test_the_application_is_unreachable_after_the_context(self):
        with direct.PlacementDirect(self.conf) as client:
            url = client.get_endpoint()
        self.assertRaises(requests.RequestException, requests.get, url)
        error = self.assertRaises(exceptions.UnknownConnectionError, client.get, '/')
        self.assertIn('No connection adapters were found', str(error))

    def test_two_clients_at_the_same_time(self):
        with (
            direct.PlacementDirect(self.conf) as first,
            direct.PlacementDirect(self.conf) as second,
        ):
            first.post('/resource_providers', json={'name': 'a'})
            providers = second.get('/resource_providers').json()['resource_providers']
        self.assertEqual(['a'], [provider['name'] for provider in providers])
