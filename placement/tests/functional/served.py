"""Placement on a loopback port, for programs that are not part of it."""

import threading

from oslotest import base
from werkzeug.serving import make_server

from placement.tests.functional.fixtures import gabbits


class ServedTestCase(base.BaseTestCase):
    """Serves Placement with an empty database.

    :ivar url: the URL of the service
    """

    def setUp(self):
        super().setUp()
        service = gabbits.APIFixture()
        service.start_fixture()
        self.addCleanup(service.stop_fixture)
        server = make_server('127.0.0.1', 0, self.serve, threaded=True)
        # The server looks for the end of the test at intervals of this number of seconds.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.url = f'http://127.0.0.1:{server.port}'
        # The settings of openstacksdk and of the command `openstack`.
        self.settings = {
            'OS_AUTH_TYPE': 'admin_token',
            'OS_ENDPOINT': self.url,
            'OS_TOKEN': 'admin',
            'OS_CLIENT_CONFIG_FILE': '/nonexistent',
        }

    def serve(self, environ, start_response):
        """Respond to a request."""
        return gabbits.application(environ, start_response)
