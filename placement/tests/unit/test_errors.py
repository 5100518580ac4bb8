"""Every failure becomes a response with a status, a code and an error document."""

from oslotest import base
import webob.exc

from placement import errors as codes
from placement import exception, microversion, wsgi_wrapper
from placement.http import errors
from placement.microversion import Version
from placement.tests.unit import edge

LATEST = microversion.MAX_VERSION
CONFLICT = 'There was a conflict when trying to complete your request.'
# Statuses whose detail is only a sentence.
UNEXPLAINED = (405, 406, 500, 503)


def provoke(error):
    """Return the response of a handler that raises an exception."""

    @wsgi_wrapper.PlacementWsgify
    def fails(req):
        raise error

    return edge.call(fails, edge.at(LATEST))


class DocumentTest(base.BaseTestCase):
    def error(self, version=LATEST, **more):
        environ = edge.at(version, **{'openstack.request_id': 'req-1'}, **more)
        response = errors.error_response(environ, 409, 'No <b>.', codes.INVENTORY_INUSE)
        return edge.call(response, environ)

    def test_json(self):
        expected = {
            'status': 409,
            'title': 'Conflict',
            'detail': f'{CONFLICT}\n\n No <b>.',
            'code': 'placement.inventory.inuse',
            'request_id': 'req-1',
        }
        self.assertEqual(expected, self.error(Version(1, 23)).error)
        del expected['code']
        self.assertEqual(expected, self.error(Version(1, 22)).error)

    def test_the_media_type_follows_accept(self):
        html, text = 'text/html; charset=UTF-8', 'text/plain; charset=UTF-8'
        for accept, expected in (
            ('', 'application/json'),
            ('application/json', 'application/json'),
            ('application/*', 'application/json'),
            ('text/html', html),
            ('application/json, text/html', html),
            ('application/json, text/html;q=0.5', 'application/json'),
            ('text/plain', text),
        ):
            response = self.error(HTTP_ACCEPT=accept)
            self.assertEqual(expected, response.headers['content-type'], accept)
            if expected in (html, text):
                self.assertIn(b'409 Conflict', response.body)
                self.assertIn(b'No &lt;b&gt;.' if expected == html else b'No <b>.', response.body)
                self.assertNotIn(CONFLICT.encode(), response.body)
        self.assertEqual(b'', self.error(method='HEAD').body)

    def test_clients_divide_the_detail_at_the_blank_line(self):
        sentence = 'Only <b>this</b> is about the request.'
        for status in (400, 403, 404, 405, 406, 409, 413, 414, 415, 503):
            response = errors.error_response(edge.at(LATEST), status, sentence)
            detail = edge.call(response, edge.at(LATEST)).error['detail']
            self.assertEqual(sentence, detail.split('\n\n')[-1].strip())
            self.assertEqual(sentence, detail.splitlines()[-1].strip())
            self.assertEqual(1 if status in UNEXPLAINED else 2, len(detail.split('\n\n')))


class ExceptionsTest(base.BaseTestCase):
    def test_status_code_and_detail(self):
        """gabbi/error-texts.yaml and error-codes.yaml test the errors of the API."""
        gone = 'This resource is no longer available. No forwarding address is given.\n\n It went.'
        unavailable = 'The database is unavailable at the moment. Please try again.'
        for error, status, code, detail, retry_after in (
            (webob.exc.HTTPGone('It went.'), 410, codes.UNDEFINED_CODE, gone, None),
            (exception.DatabaseUnavailable(), 503, codes.UNDEFINED_CODE, unavailable, '1'),
            (exception.OutcomeUnknown(), 503, codes.UNDEFINED_CODE, None, '1'),
            (exception.ConcurrentChange('x'), 409, 'placement.concurrent_update', None, None),
        ):
            with self.subTest(error):
                response = provoke(error)
                self.assertEqual('application/json', response.headers['content-type'])
                found = response.error
                self.assertEqual((status, code), (response.status, found['code']))
                self.assertEqual(detail or found['detail'], found['detail'])
                self.assertEqual(retry_after, response.headers.get('retry-after'))

    def test_every_exception_for_clients_has_a_status(self):
        internal = (
            exception.InvalidPolicyFile,
            exception.MetricsUnavailable,
            exception.PlacementException,
            exception.UnsuitableDatabase,
        )
        for value in vars(exception).values():
            if isinstance(value, type) and issubclass(value, exception.PlacementException):
                self.assertEqual(value not in internal, value.status is not None, value)
                self.assertTrue(value.__doc__, value)

    def test_an_exception_without_a_status_propagates(self):
        for error in (ZeroDivisionError(), exception.UnsuitableDatabase('x')):
            self.assertRaises(type(error), provoke, error)

    def test_allowed_methods(self):
        for error, allowed in (
            (exception.MethodNotAllowed('DELETE', 'GET, PUT'), 'GET, PUT'),
            (webob.exc.HTTPMethodNotAllowed(headers={'Allow': 'GET'}), 'GET'),
            (exception.MethodNotAllowed('DELETE'), None),
        ):
            self.assertEqual(allowed, provoke(error).headers.get('allow'))
