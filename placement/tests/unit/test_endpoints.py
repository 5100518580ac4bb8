"""Paths that are no part of the API."""

from oslo_context import context
from oslotest import base

from placement import endpoints
from placement.http.request import ENVIRON_REQUEST_ID
from placement.tests.unit import edge


class EndpointsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.received = []
        self.application = endpoints.Endpoints(edge.ok, {'/here': self._endpoint})

    def _endpoint(self, environ, start_response):
        self.received.append((environ[ENVIRON_REQUEST_ID], context.get_current()))
        return edge.ok(environ, start_response)

    def test_the_path_is_relative_to_the_mount_point(self):
        for prefix in ('', '/placement'):
            response = edge.call(self.application, edge.environ(path='/here', SCRIPT_NAME=prefix))
            self.assertEqual(200, response.status)
        self.assertEqual(2, len(self.received))

    def test_other_paths_belong_to_the_api(self):
        for path in ('', '/', '/here/', '/here/x', '/HERE', '/there'):
            response = edge.call(self.application, edge.environ(path=path))
            self.assertNotIn('x-openstack-request-id', response.headers)
        self.assertEqual([], self.received)

    def test_the_response_and_the_log_have_a_request_id(self):
        context.RequestContext(user_id='user', request_id='req-old')
        response = edge.call(self.application, edge.environ(path='/here'))
        ((request_id, current),) = self.received
        self.assertEqual(request_id, response.headers['x-openstack-request-id'])
        self.assertEqual((request_id, None), (current.request_id, current.user_id))

    def test_the_request_id_of_the_endpoint_is_kept(self):
        def api(environ, start_response):
            start_response('404 Not Found', [('X-Openstack-Request-Id', 'req-1')])
            return []

        application = endpoints.Endpoints(edge.ok, {'/here': api})
        response = edge.call(application, edge.environ(path='/here'))
        self.assertEqual('req-1', response.headers['x-openstack-request-id'])

    def test_methods(self):
        self.assertEqual(200, edge.call(self.application, edge.environ('HEAD', '/here')).status)
        response = edge.call(self.application, edge.environ('DELETE', '/here'))
        self.assertEqual((405, 'GET, HEAD'), (response.status, response.headers['allow']))
        self.assertEqual(response.headers['x-openstack-request-id'], response.error['request_id'])
        self.assertEqual(1, len(self.received))
