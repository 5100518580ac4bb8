"""The script of the migration guide that compares the responses of two services."""

from pathlib import Path
import subprocess
import sys
import threading

from keystoneauth1 import adapter, session, token_endpoint
from werkzeug.serving import make_server

import placement
from placement.tests import where
from placement.tests.functional import served
from placement.tests.functional.fixtures import gabbits

SCRIPT = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'compare_releases.py'


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class CompareReleasesTest(served.ServedTestCase):
    """Two services with one database; the second one replaces a text in its responses.

    :ivar replaced: the text, and another text of the same length
    """

    def setUp(self):
        super().setUp()
        self.replaced = (b'', b'')
        server = make_server('127.0.0.1', 0, self.serve_other, threaded=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        for cleanup in (server.server_close, thread.join, server.shutdown):
            self.addCleanup(cleanup)
        self.other = f'http://127.0.0.1:{server.port}'
        api = adapter.Adapter(
            session.Session(token_endpoint.Token(self.url, 'admin')),
            default_microversion='1.39',
            service_type='placement',
        )
        self.host = api.post('/resource_providers', json={'name': 'host'}).json()['uuid']
        inventories = {'VCPU': {'total': 16}, 'MEMORY_MB': {'total': 4096}}
        body = {'resource_provider_generation': 0, 'inventories': inventories}
        api.put(f'/resource_providers/{self.host}/inventories', json=body)
        claim = {
            'allocations': {self.host: {'resources': {'VCPU': 2}}},
            'consumer_generation': None,
            'consumer_type': 'INSTANCE',
            'project_id': 'project',
            'user_id': 'user',
        }
        api.put(f'/allocations/{self.host}', json=claim)

    def serve_other(self, environ, start_response):
        body = b''.join(gabbits.application(environ, start_response))
        return [body.replace(*self.replaced) if self.replaced[0] else body]

    def compare(self, *arguments, token='admin'):
        """Run the script, and return its exit status and its lines."""
        done = subprocess.run(
            (sys.executable, SCRIPT, *arguments),
            env={'OS_TOKEN': token},
            capture_output=True,
            text=True,
        )
        return done.returncode, (done.stdout + done.stderr).splitlines()

    def test_equal_services(self):
        """12 paths are read in 4 microversions."""
        status, lines = self.compare(self.url, f'{self.other}/', '/usages?project_id=project')
        self.assertEqual((0, ['48 reads, 0 different']), (status, lines))

    def test_a_difference(self):
        """Only the inventories contain the total."""
        self.replaced = (b'"total":16', b'"total":17')
        status, lines = self.compare(self.url, self.other)
        path = f'/resource_providers/{self.host}/inventories'
        expected = [
            f'different in microversion {v}: {path}' for v in ('1.0', '1.14', '1.28', '1.39')
        ]
        self.assertEqual((1, [*expected, '44 reads, 4 different']), (status, lines))

    def test_a_token_without_permission(self):
        status, (line,) = self.compare(self.url, self.other, token='other')
        self.assertEqual(2, status)
        self.assertEqual(f'Error: {self.url}/resource_providers: HTTP status 403', line)
