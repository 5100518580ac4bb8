"""Paths that are no part of the API."""

import itertools

from oslotest import base

from placement import deploy, fault_wrap
from placement.tests.unit import edge


class EndpointsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.received = 0
        endpoints = deploy.Endpoints(edge.ok, {'/here': self._endpoint})
        self.application = fault_wrap.FaultWrapper(endpoints)

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

    def test_the_url_ends_in_the_path(self):
        for key in ('REQUEST_URI', 'RAW_URI'):
            for url in (
                '/here',
                '/here?',
                '/here?a=/b%zz',
                '/placement/here',
                '/placement/.well-known/here',
                'http://cloud.example.com:8778/placement/here?x',
            ):
                response = edge.call(self.application, edge.environ(path='/here', **{key: url}))
                self.assertEqual((200, b'ok'), (response.status, response.body))
        self.assertEqual(12, self.received)

    def test_another_url_is_not_found(self):
        for key, method in itertools.product(('REQUEST_URI', 'RAW_URI'), ('GET', 'DELETE')):
            for url in (
                '/placement/%zz/../here',
                '/placement%2fher%65',
                '/placement/here%6',
                '/placement/her%65',
                '/placement/x/../here',
                '/placement/./here',
                '/../here',
                '/here/',
                '/here#a',
                '/here;a',
                '/there',
                '/?/here',
                '',
                '*',
            ):
                environ = edge.environ(method, '/here', **{key: url})
                response = edge.call(self.application, environ)
                self.assertEqual(404, response.status)
                self.assertIn('detail', response.error)
        self.assertEqual(0, self.received)
        # Paths of the API have any URL.
        environ = edge.environ(path='/traits/%zz', REQUEST_URI='/x/../traits/%25zz')
        self.assertEqual(200, edge.call(self.application, environ).status)
