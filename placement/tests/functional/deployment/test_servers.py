"""The files in etc/ serve Placement with and without a path prefix."""

import contextlib
import json
from pathlib import Path
import sqlite3
import time

import ddt
import requests

from placement.tests import where
from placement.tests.functional.deployment import base, load
from placement.tests.functional.faults import machines
from placement.tests.waiting import LONGEST, wait_until

# Headers with which a client could change the links in the response to another client.
SPOOFED = {
    'Forwarded': 'for=192.0.2.66;host=evil.example.org;proto=http',
    'X-Forwarded-For': '192.0.2.66',
    'X-Forwarded-Host': 'evil.example.org',
    'X-Forwarded-Prefix': '/evil',
    'X-Forwarded-Proto': 'http',
    'X_Forwarded_Host': 'evil.example.org',
    'X_Forwarded_Prefix': '/evil',
}


@ddt.ddt
class ServersTest(base.TestCase):
    def test_uwsgi_at_the_root(self) -> None:
        self.check_uwsgi('')

    @where.at_night('test_uwsgi_at_the_root is part of the gate.')
    def test_uwsgi_below_a_prefix(self) -> None:
        self.check_uwsgi('/placement')

    def check_uwsgi(self, prefix: str) -> None:
        stack = self.stack(prefix)
        uwsgi = self.started(stack.uwsgi())
        log = self.folder / 'uwsgi.log'
        for server in (self.started(stack.nginx()), self.started(stack.apache('uwsgi'))):
            self.check(server, log)
            self.assertNotEqual(403, self.metrics(server, '127.0.0.1'))
        balancer = self.started(stack.haproxy(uwsgi))
        self.haproxy().wait_until_up(1)
        self.check(balancer, log)
        # All requests that HAProxy forwards are local requests for Placement.
        self.assertEqual(403, self.metrics(balancer, '127.0.0.1'))

    @where.at_night('test_uwsgi_at_the_root is part of the gate.')
    @ddt.data('/placement', '')
    def test_mod_wsgi(self, prefix: str) -> None:
        apache = self.started(self.stack(prefix).apache('wsgi'))
        self.check(apache, self.folder / 'apache-wsgi' / 'placement.log')
        self.assertNotEqual(403, self.metrics(apache, '127.0.0.1'))

    def check(self, server: machines.Worker, log: Path) -> None:
        self.tour(server)
        self.check_links(server)
        self.check_log(server, log)
        self.assertEqual(403, self.metrics(server, '127.0.0.2'))

    def check_links(self, server: machines.Worker) -> None:
        name = f'CUSTOM_{server.port}'
        path = f'{self.servers.prefix}/resource_classes/{name}'
        client = self.client(server)
        _, headers, _ = client.send('POST', '/resource_classes', {'name': name}, SPOOFED)
        self.assertEqual(f'https://127.0.0.1:{server.port}{path}', headers['Location'])
        _, _, body = client.send('GET', f'/resource_classes/{name}', headers=SPOOFED)
        self.assertEqual([{'rel': 'self', 'href': path}], json.loads(body)['links'])

    def check_log(self, server: machines.Worker, log: Path) -> None:
        """Check that the log has one line for a request, with the address of the client."""
        name = f'unique{server.port}'
        self.client(server).send('GET', f'/resource_providers?name={name}', headers=SPOOFED)
        # The line is written after the response was sent.
        wait_until(lambda: name in log.read_text())
        lines = [line for line in log.read_text().splitlines() if name in line]
        self.assertEqual(1, len(lines), lines)
        self.assertRegex(lines[0], rf'\] 127\.0\.0\.1 "GET {self.servers.prefix}/resource_prov')

    def metrics(self, server: machines.Worker, source: str) -> int:
        """Return the status of a request for the metrics from an address of this machine."""
        client = load.Client(server, self.servers.prefix, self.servers.certificate, source)
        with contextlib.closing(client):
            return client.send('GET', '/metrics')[0]

    @where.at_night('test_uwsgi_at_the_root is part of the gate.')
    def test_uwsgi_ends_a_request_that_takes_too_long(self) -> None:
        uwsgi = self.started(self.stack('').uwsgi(harakiri=5))
        url = f'http://127.0.0.1:{uwsgi.port}/traits/CUSTOM_ONE'
        before = requests.get(url, headers=load.HEADERS, timeout=LONGEST)
        # The end of a request stops the timer of the process, shortly after its response.
        time.sleep(1)
        with contextlib.closing(sqlite3.connect(self.folder / 'placement.db')) as conn:
            conn.execute('BEGIN IMMEDIATE')
            with self.assertRaises(requests.ConnectionError):
                requests.put(url, headers=load.HEADERS, timeout=LONGEST)
        # Another worker process serves the next request.
        after = requests.put(url, headers=load.HEADERS, timeout=LONGEST)
        self.assertEqual([404, 201], [before.status_code, after.status_code])
        log = (self.folder / 'uwsgi.log').read_text()
        self.assertIn('HARAKIRI ON WORKER 1', log)
