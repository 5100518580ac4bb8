"""Paths that are no part of the API."""

from oslotest import base

from placement import endpoints
from placement.tests.unit import edge


class EndpointsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.received = 0
        self.application = endpoints.Endpoints(edge.ok, {'/here': self._endpoint})

    def _endpoint(self, environ, start_response):
        self.received += 1
        return edge.ok(environ, start_response)

    def test_the_path_is_relative_to_the_mount_point(self):
        for prefix in ('', '/placement'):
            response = edge.call(self.application, edge.environ(path='/here', SCRIPT_NAME=prefix))
            self.assertEqual(200, response.status)
        self.assertEqual(2, self.received)

    def test_other_paths_belong_to_the_api(self):
        for path in ('', '/', '/here/', '/here/x', '/HERE', '/there'):
            self.assertEqual(200, edge.call(self.application, edge.environ(path=path)).status)
        self.assertEqual(0, self.received)

    def test_methods(self):
        self.assertEqual(200, edge.call(self.application, edge.environ('HEAD', '/here')).status)
        response = edge.call(self.application, edge.environ('DELETE', '/here'))
        self.assertEqual((405, 'GET, HEAD'), (response.status, response.headers['allow']))
        self.assertEqual(1, self.received)
