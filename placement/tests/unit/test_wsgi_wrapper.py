"""The applications that the decorator of handlers makes."""

from oslotest import base
import webob

from placement import exception, microversion, wsgi_wrapper
from placement.tests.unit import edge


def hello(req):
    return webob.Response(f'hello {req.method}')


class PlacementWsgifyTest(base.BaseTestCase):
    def test_a_response_is_sent(self):
        response = edge.call(wsgi_wrapper.PlacementWsgify(hello), edge.environ())
        self.assertEqual((200, b'hello GET'), (response.status, response.body))

    def test_a_request_object_returns_a_response_object(self):
        response = wsgi_wrapper.PlacementWsgify(hello)(webob.Request(edge.environ()))
        self.assertEqual('hello GET', response.text)

    def test_errors_become_error_documents(self):
        for error in (exception.TraitNotFound('T'), webob.exc.HTTPNotFound('no such trait')):

            def fail(req, error=error):
                raise error

            environ = edge.at(microversion.MAX_VERSION)
            response = edge.call(wsgi_wrapper.PlacementWsgify(fail), environ)
            self.assertEqual((404, 404), (response.status, response.error['status']))

    def test_other_exceptions_propagate(self):
        def fail(req):
            raise KeyError('defect')

        application = wsgi_wrapper.PlacementWsgify(fail)
        self.assertRaises(KeyError, edge.call, application, edge.environ())
