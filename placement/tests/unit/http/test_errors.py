"""Every failure becomes a response with a status, a code and an error document."""

from typing import NamedTuple

import ddt
from oslotest import base
import webob.exc

from placement import errors as codes
from placement import exception, microversion, wsgi_wrapper
from placement.http import errors, request
from placement.microversion import Version
from placement.tests.unit import edge

LATEST = microversion.MAX_VERSION
MALFORMED = (
    'The server could not comply with the request since it is either malformed or otherwise '
    'incorrect.'
)
CONFLICT = 'There was a conflict when trying to complete your request.'
# Statuses whose detail is only a sentence.
UNEXPLAINED = (405, 406, 500, 503)


class ErrorTest(base.BaseTestCase):
    def error(self, version=LATEST, **more):
        environ = edge.at(version, **{request.ENVIRON_REQUEST_ID: 'req-1'}, **more)
        response = errors.error_response(environ, 409, 'No <b>.', codes.INVENTORY_INUSE)
        return edge.call(response, environ)

    def test_json(self):
        self.assertEqual(
            {
                'status': 409,
                'title': 'Conflict',
                'detail': f'{CONFLICT}\n\n No <b>.',
                'code': 'placement.inventory.inuse',
                'request_id': 'req-1',
            },
            self.error().error,
        )

    def test_codes_are_new_in_1_23(self):
        self.assertNotIn('code', self.error(Version(1, 22)).error)
        self.assertIn('code', self.error(Version(1, 23)).error)

    def test_the_media_type_follows_accept(self):
        for accept, expected in (
            ('', 'application/json'),
            ('application/json', 'application/json'),
            ('application/*', 'application/json'),
            ('text/html', 'text/html; charset=UTF-8'),
            ('application/json, text/html', 'text/html; charset=UTF-8'),
            ('application/json, text/html;q=0.5', 'application/json'),
            ('text/plain', 'text/plain; charset=UTF-8'),
        ):
            response = self.error(HTTP_ACCEPT=accept)
            self.assertEqual(expected, response.headers['content-type'], accept)

    def test_html_and_text_have_no_explanation(self):
        for accept in ('text/html', 'text/plain'):
            body = self.error(HTTP_ACCEPT=accept).body.decode()
            self.assertIn('409 Conflict', body)
            self.assertNotIn(CONFLICT, body)

    def test_html_is_escaped(self):
        self.assertIn(b'No &lt;b&gt;.', self.error(HTTP_ACCEPT='text/html').body)

    def test_head_has_no_body(self):
        self.assertEqual(b'', self.error(method='HEAD').body)


def provoke(error):
    """Return the response of a handler that raises an exception."""

    @wsgi_wrapper.PlacementWsgify
    def fails(req):
        raise error

    return edge.call(fails, edge.at(LATEST))


class Case(NamedTuple):
    """An exception and its response."""

    error: exception.PlacementException
    status: int
    code: str = codes.UNDEFINED_CODE


@ddt.ddt
class StatusesTest(base.BaseTestCase):
    """The status of each exception."""

    @ddt.data(
        Case(exception.ResourceProviderNotFound('u'), 404),
        Case(exception.RouteNotFound(), 404),
        Case(exception.MethodNotAllowed('GET'), 405),
        Case(exception.UnknownTraits(['A']), 400),
        Case(exception.ConcurrentChange('x'), 409, 'placement.concurrent_update'),
        Case(exception.InventoryInUse(['VCPU'], 'u'), 409, 'placement.inventory.inuse'),
        Case(exception.PolicyNotAuthorized('rule'), 403),
        Case(exception.DatabaseUnavailable(), 503),
        Case(exception.OutcomeUnknown(), 503),
        Case(request.NotAcceptable(['a/b']), 406),
        Case(request.BodyTooLarge(1), 413),
        Case(request.UnsupportedMediaType(None, 'a/b'), 415),
    )
    def test_status_and_code(self, case):
        response = provoke(case.error)
        self.assertEqual(case.status, response.status)
        self.assertEqual(case.code, response.error['code'])
        self.assertEqual('1' if case.status == 503 else None, response.headers.get('retry-after'))

    @ddt.data(
        (exception.BadQuery('No.'), f'{MALFORMED}\n\n No.'),
        (
            exception.PolicyNotAuthorized('rule'),
            'Access was denied to this resource.\n\n Policy does not allow rule to be performed.',
        ),
        (
            exception.TraitNotFound('T'),
            'The resource could not be found.\n\n No such trait T.',
        ),
        (
            exception.TraitInUse('T'),
            f'{CONFLICT}\n\n The trait T is in use by a resource provider.',
        ),
        (
            request.BodyTooLarge(1),
            'The body of your request was too large for this server.\n\n '
            'The request body is larger than 1 bytes.',
        ),
        (
            request.UnsupportedMediaType(None, 'a/b'),
            f'{MALFORMED}\n\n The media type None is not supported, use a/b',
        ),
        (exception.MethodNotAllowed('GET'), 'The method GET is not allowed for this resource.'),
        (request.NotAcceptable(['a/b']), 'Only a/b is provided'),
        (
            exception.DatabaseUnavailable(),
            'The database is unavailable at the moment. Please try again.',
        ),
    )
    @ddt.unpack
    def test_detail(self, error, detail):
        self.assertEqual(detail, provoke(error).error['detail'])

    @ddt.data(*errors.STATUSES.values())
    def test_clients_divide_the_detail_at_the_blank_line(self, status):
        sentence = 'Only <b>this</b> is about the request.'
        response = errors.error_response(edge.at(LATEST), status, sentence)
        detail = edge.call(response, edge.at(LATEST)).error['detail']
        self.assertEqual(sentence, detail.split('\n\n')[-1].strip())
        self.assertEqual(sentence, detail.splitlines()[-1].strip())
        self.assertEqual(1 if status in UNEXPLAINED else 2, len(detail.split('\n\n')))

    def test_every_exception_for_clients_has_a_status(self):
        internal = (
            exception.InvalidPolicyFile,
            exception.MetricsUnavailable,
            exception.PlacementException,
            exception.UnsuitableDatabase,
        )
        for value in vars(exception).values():
            if isinstance(value, type) and value not in internal:
                self.assertIsNotNone(errors.status_of(value.__new__(value)), value)

    def test_an_exception_without_a_status_propagates(self):
        for error in (ZeroDivisionError(), exception.UnsuitableDatabase('x')):
            self.assertRaises(type(error), provoke, error)

    def test_exceptions_of_webob(self):
        response = provoke(webob.exc.HTTPGone('It is deleted.'))
        self.assertEqual(410, response.status)
        self.assertEqual(
            'This resource is no longer available. No forwarding address is given.\n\n '
            'It is deleted.',
            response.error['detail'],
        )
        self.assertEqual('application/json', response.headers['content-type'])
        response = provoke(webob.exc.HTTPMethodNotAllowed(headers={'Allow': 'GET'}))
        self.assertEqual('GET', response.headers['allow'])

    def test_a_method_that_is_not_allowed(self):
        self.assertEqual(
            'GET, PUT',
            provoke(exception.MethodNotAllowed('DELETE', 'GET, PUT')).headers['allow'],
        )
        self.assertNotIn('allow', provoke(exception.MethodNotAllowed('DELETE')).headers)
