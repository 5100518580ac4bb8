"""Clients without a token neither stop the service nor read more than they may."""

import contextlib
import json

import requests

from placement.tests import where
from placement.tests.functional.deployment import base, load, paths, slow
from placement.tests.functional.faults import machines
from placement.tests.waiting import LONGEST

CONNECTIONS = 200
ACCEPTED = ('placement.example.org', 'PLACEMENT.EXAMPLE.ORG:8443', 'localhost', '[::1]:8443')
REFUSED = ('evil.example', 'evil.example:443', 'placement.example.org.evil.example', '192.0.2.66')
JSON = {'Content-Type': 'application/json'}
# The status, the headers, and the size of the body of requests that Placement rejects.
BODIES = (
    (401, JSON, slow.LIMIT),
    (413, JSON, slow.LIMIT + 1),
    (413, load.HEADERS, 4 * slow.LIMIT),
    (413, JSON, 8 * slow.LIMIT - 1),
    (415, load.HEADERS | {'Content-Type': 'text/plain'}, slow.LIMIT),
)
# Requests for the API whose paths or queries resemble the path of the metrics, or are not ASCII.
REQUESTS = (
    (204, 'GET', '/traits/CUSTOM_METRICS'),
    (204, 'GET', '/traits/CUSTOM%5fMETRICS'),
    (404, 'GET', '/traits/CUSTOM_%C3%BC'),
    (404, 'GET', '/resource_classes/%E2%82%AC%25%20x'),
    (200, 'GET', '/resource_providers?name=/metrics'),
    (200, 'GET', '/resource_providers?name=%2Fplacement%2Fmetrics%25zz'),
    (200, 'GET', '/resource_providers?name=%C3%BC%F0%9F%92%BB'),
)


@where.at_night('Slow clients take minutes.')
class AttacksTest(base.TestCase):
    def check(self, server: machines.Worker) -> None:
        client = self.client(server)
        self.check_hosts(client)
        self.check_bodies(server)
        self.check_api(client)
        self.check_metrics(server)
        self.check_slow_clients(server)

    def check_hosts(self, client: load.Client) -> None:
        """Check that `Location` contains only names and addresses of the configuration."""
        path = '/traits/CUSTOM_METRICS'
        for host in ACCEPTED:
            status, headers, _ = client.send('PUT', path, headers={'Host': host})
            self.assertIn(status, (201, 204), host)
            location = f'https://{host}{self.servers.prefix}{path}'
            self.assertEqual(location.lower(), headers['Location'].lower())
        for host in REFUSED:
            status, headers, _ = client.send('PUT', path, headers={'Host': host})
            self.assertEqual((421, None), (status, headers['Location']), host)

    def check_bodies(self, server: machines.Worker) -> None:
        """Check that a client that sends a whole body receives the response of Placement."""
        for expected, headers, size in BODIES:
            client = self.client(server)
            status, _, content = client.post('/resource_providers', headers, b'[' * size)
            self.assertEqual(expected, status, content)
            self.assertTrue({'code', 'errors'} & set(json.loads(content)), content)

    def check_api(self, client: load.Client) -> None:
        for expected, method, path in REQUESTS:
            status, headers, content = client.send(method, path)
            self.assertEqual(expected, status, (path, content))
            self.assertIn('x-openstack-request-id', headers, path)

    def check_metrics(self, server: machines.Worker) -> None:
        """Check that another machine reads the metrics with no path."""
        client = load.Client(server, '', self.servers.certificate, source='127.0.0.2')
        with contextlib.closing(client):
            disguised = paths.disguised(self.servers.prefix)
            shown = [path for path in disguised if is_page(client.send('GET', path)[2])]
        self.assertEqual((paths.COUNT, []), (len(disguised), shown))

    def check_slow_clients(self, server: machines.Worker) -> None:
        """Check that requests have responses while other clients occupy their connections."""
        kinds = [slow.KINDS[number % len(slow.KINDS)] for number in range(CONNECTIONS)]
        with slow.SlowClients(server.port, self.servers.prefix, self.servers.certificate, kinds):
            for path in ('/healthcheck', '/resource_providers', '/traits') * 3:
                self.assertEqual(200, self.client(server).send('GET', path)[0])

    def test_servers_with_uwsgi(self) -> None:
        uwsgi = self.started(self.stack().uwsgi())
        page = requests.get(f'http://127.0.0.1:{uwsgi.port}/placement/metrics', timeout=LONGEST)
        self.assertTrue(is_page(page.content))
        self.check(self.started(self.servers.nginx()))
        self.check(self.started(self.servers.apache('uwsgi')))
        balancer = self.started(self.servers.haproxy(uwsgi))
        self.haproxy().wait_until_up(1)
        self.check(balancer)

    def test_apache_with_mod_wsgi(self) -> None:
        server = self.started(self.stack().apache('wsgi'))
        self.assertTrue(is_page(self.client(server).send('GET', '/metrics')[2]))
        self.check(server)


def is_page(content: bytes) -> bool:
    """Return whether the body of a response contains metrics."""
    return b'# HELP ' in content
