"""The API in the process of its caller."""

from keystoneauth1 import adapter
import requests

from placement import direct
from placement.tests.functional import base


class DirectTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.service.conf_fixture.conf

    def test_requests_and_answers(self):
        with direct.PlacementDirect(self.conf) as client:
            self.assertIsInstance(client, adapter.Adapter)
            answer = client.post(
                '/resource_providers', json={'name': 'a name'}, microversion='1.20'
            )
            self.assertEqual(200, answer.status_code)
            uuid = answer.json()['uuid']
            answer = client.get('/resource_providers', params={'name': 'a name'})
            self.assertEqual([uuid], [rp['uuid'] for rp in answer.json()['resource_providers']])
            self.assertEqual('placement 1.0', answer.headers['openstack-api-version'])
            self.assertEqual(204, client.delete(f'/resource_providers/{uuid}').status_code)

    def test_the_mount_point(self):
        with direct.PlacementDirect(self.conf) as client:
            self.assertRegex(client.get_endpoint(), r'^http://[0-9a-f-]{36}/placement$')
            answer = client.post('/resource_providers', json={'name': 'a'})
            self.assertRegex(
                answer.headers['location'], rf'^{client.get_endpoint()}/resource_providers/'
            )

    def test_errors_do_not_raise(self):
        with direct.PlacementDirect(self.conf) as client:
            self.assertEqual(404, client.get('/nowhere').status_code)
            self.assertEqual(400, client.post('/resource_providers', json=[]).status_code)

    def test_the_latest_microversion_unless_a_call_names_one(self):
        with direct.PlacementDirect(self.conf, latest_microversion=True) as client:
            latest = client.get('/resource_providers').headers['openstack-api-version']
            named = client.get('/resource_providers', microversion='1.3')
        self.assertEqual('placement 1.39', latest)
        self.assertEqual('placement 1.3', named.headers['openstack-api-version'])

    def test_reshaping_under_the_policy_as_shipped(self):
        self.service.conf_fixture.config(group='oslo_policy', enforce_new_defaults=True)
        with direct.PlacementDirect(self.conf, latest_microversion=True) as client:
            answer = client.post('/reshaper', json={'inventories': {}, 'allocations': {}})
        self.assertNotEqual(403, answer.status_code)

    def test_it_turns_authentication_off(self):
        self.service.conf_fixture.config(group='api', auth_strategy='keystone')
        with direct.PlacementDirect(self.conf) as client:
            self.assertEqual('noauth2', self.conf.api.auth_strategy)
            self.assertEqual(200, client.get('/resource_providers').status_code)

    def test_afterwards_it_is_gone(self):
        with direct.PlacementDirect(self.conf) as client:
            url = client.get_endpoint()
        self.assertRaises(requests.RequestException, requests.get, url)
        self.assertRaises(Exception, client.get, '/')

    def test_two_at_a_time(self):
        with (
            direct.PlacementDirect(self.conf) as one,
            direct.PlacementDirect(self.conf) as other,
        ):
            one.post('/resource_providers', json={'name': 'a'})
            found = other.get('/resource_providers').json()['resource_providers']
        self.assertEqual(['a'], [provider['name'] for provider in found])
