"""The tests notice requests and responses that the OpenAPI documents do not describe."""

import json

from oslotest import base

from placement.tests import documented, wsgi_client
from placement.tests.wsgi_client import Request

UUID = '7b9e1d1c-0000-4000-8000-000000000001'
REQUEST_ID = f'req-{UUID}'
PROVIDERS = json.dumps({'resource_providers': []}).encode()
HEADERS = {
    'x-openstack-request-id': REQUEST_ID,
    'openstack-api-version': 'placement 1.39',
    'vary': 'openstack-api-version',
}
LISTED = {
    **HEADERS,
    'content-type': 'application/json',
    'last-modified': 'Tue, 24 Nov 2026 00:00:00 GMT',
    'cache-control': 'no-cache',
}


def error(status, **members):
    """Return the body of an error."""
    whole = {'status': status, 'title': 'x', 'detail': 'x', 'request_id': REQUEST_ID, **members}
    return json.dumps({'errors': [whole]}).encode()


IN_USE = error(400, code='placement.inventory.inuse')
PROVIDER = 'GET', '/resource_providers'
CLAIM = 'PUT', f'/allocations/{UUID}'


class DocumentedTest(base.BaseTestCase):
    def send(self, request, status, headers, body=b''):
        """Send a request to an application that always returns the same response."""

        def application(environ, start_response):
            environ['wsgi.input'].read(int(environ['CONTENT_LENGTH']))
            start_response(status, list(headers.items()))
            return [body]

        return wsgi_client.send(documented.Documented(application), request)

    def assert_undocumented(self, message, *arguments):
        with self.subTest(message, request=arguments[0]):
            error = self.assertRaises(documented.UndocumentedError, self.send, *arguments)
            self.assertIn(message, str(error))

    def test_a_documented_request_and_response(self):
        before = documented.compared[200]
        request = Request(*PROVIDER, query=f'name=a&member_of={UUID}')
        self.assertEqual(200, self.send(request, '200 OK', LISTED, PROVIDERS).status)
        self.assertEqual(before + 1, documented.compared[200])

    def test_an_undocumented_request_or_response(self):
        get, others = Request(*PROVIDER), {**LISTED, 'x-other': 'x'}
        without = {name: value for name, value in LISTED.items() if name != 'vary'}
        red = Request(*PROVIDER, query='name=a&colour=red')
        for message, *arguments in (
            ('the query has other parameters', red, '200 OK', LISTED, PROVIDERS),
            ('uuid in the query', Request(*PROVIDER, 'uuid=x'), '200 OK', LISTED, PROVIDERS),
            ('name in the path', Request('PUT', '/traits/HW_X'), '204 No Content', HEADERS),
            ('the body of the request', Request(*CLAIM, body=b'{}'), '204 No Content', HEADERS),
            ('headers are not documented', get, '200 OK', others, PROVIDERS),
            ('is missing', get, '200 OK', without, PROVIDERS),
            ('the status is not documented', get, '204 No Content', LISTED),
            ('the response has no body', get, '200 OK', LISTED),
            ('the body of the response', get, '200 OK', LISTED, b'{}'),
            (
                'is not declared',
                get,
                '400 Bad Request',
                LISTED,
                error(400, code='placement.inventory.inuse'),
            ),
        ):
            self.assert_undocumented(message, *arguments)

    def test_a_valid_body_that_the_service_rejects(self):
        headers = {**HEADERS, 'content-type': 'application/json'}
        for name, allowed in (('x', True), (7, False), ('\0', False)):
            request = Request(
                'POST', '/resource_providers', body=json.dumps({'name': name}).encode()
            )
            detail = 'JSON does not validate: x'
            body = error(400, detail=detail, code='placement.undefined_code')
            arguments = (request, '400 Bad Request', headers, body)
            if allowed:
                self.assert_undocumented('the document allows the body', *arguments)
            else:
                self.assertEqual(400, self.send(*arguments).status)

    def test_a_path_that_is_not_documented(self):
        request = Request('GET', '/nowhere')
        headers = {**HEADERS, 'content-type': 'application/json'}
        body = error(404, code='placement.undefined_code')
        self.assertEqual(404, self.send(request, '404 Not Found', headers, body).status)
        self.assert_undocumented('unknown paths', request, '200 OK', headers, b'{}')
        self.assert_undocumented('violates its schema', request, '404 Not Found', headers, b'{}')
