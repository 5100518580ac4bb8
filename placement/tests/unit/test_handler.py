"""Routing, and the checks of Content-Length, Content-Type, and a lost query string."""

from oslotest import base

from placement import handler, microversion
from placement.tests.unit import edge


def _returns_parameters(environ, start_response):
    start_response('200 OK', [])
    return [repr(environ['wsgiorg.routing_args'][1]).encode()]


ROUTES = {
    '': {'GET': _returns_parameters},
    '/': {'GET': _returns_parameters},
    '/things': {'GET': _returns_parameters, 'POST': _returns_parameters},
    '/things/{name}': {'GET': _returns_parameters, 'PUT': _returns_parameters},
    '/things/{name}/parts/{part}': {'GET': _returns_parameters},
}


class RoutingTest(base.BaseTestCase):
    application = handler.PlacementHandler(ROUTES)

    def send(self, path, method='GET', **more):
        return edge.call(self.application, edge.environ(method, path, **more))

    def test_found(self):
        for path, parameters in (
            ('', {}),
            ('/', {}),
            ('/things', {}),
            ('/things/a', {'name': 'a'}),
            ('/things/a.json', {'name': 'a.json'}),
            ('/things/parts', {'name': 'parts'}),
            ('/things/a/parts/b', {'name': 'a', 'part': 'b'}),
            ('/things/Ã¼', {'name': 'ü'}),
            ('/things/\xff', {'name': '\ufffd'}),
            ('/things/a\0', {'name': 'a\ufffd'}),
            ('/things/a\n', {'name': 'a\n'}),
        ):
            response = self.send(path)
            self.assertEqual((200, repr(parameters)), (response.status, response.body.decode()))

    def test_not_found(self):
        for path in (
            '//',
            '/Things',
            '/things/',
            '//things',
            '/things//parts/b',
            '/things/a/',
            '/things/a/parts',
            '/things/a/parts/b/c',
            '/thing',
            'things',
            '/' + 'a/' * 100000,
        ):
            response = self.send(path)
            self.assertEqual(404, response.status)
            self.assertTrue(response.error['detail'])

    def test_headers_of_a_body(self):
        for path, headers, status in (
            ('/nowhere', {'CONTENT_LENGTH': 'many'}, 400),
            ('/nowhere', {'CONTENT_LENGTH': '1'}, 400),
            ('/', {'CONTENT_LENGTH': '1', 'CONTENT_TYPE': ''}, 400),
            ('/', {'CONTENT_LENGTH': '0'}, 200),
            ('/', {'CONTENT_LENGTH': '1', 'CONTENT_TYPE': 'x/y'}, 200),
        ):
            self.assertEqual(status, self.send(path, **headers).status, headers)


class LostQueryTest(base.BaseTestCase):
    """The web server passes on the URL, but not its query string."""

    application = handler.PlacementHandler(ROUTES)

    def send(self, url, version=microversion.MAX_VERSION, query=''):
        environ = edge.at(version, path='/things', REQUEST_URI=url, QUERY_STRING=query)
        if not query:
            del environ['QUERY_STRING']
        return edge.call(self.application, environ)

    def test_the_request_is_refused(self):
        for url in ('/placement/things?name=one', 'http://host/things?x', '/things??'):
            response = self.send(url)
            self.assertEqual(414, response.status)
            self.assertEqual('placement.undefined_code', response.error['code'])
            self.assertEqual('Request-URI Too Long', response.error['title'])
            self.assertIn('discarded the query string', response.error['detail'])
            self.assertNotIn('code', self.send(url, microversion.ERROR_CODES.before()).error)

    def test_other_urls(self):
        for url in ('/things', '/things?', '/things#a?b', ''):
            self.assertEqual(200, self.send(url).status)
        self.assertEqual(200, self.send('/things?a=1', query='a=1').status)


class DeclarationsTest(base.BaseTestCase):
    def test_all_routes(self):
        allowed = {path: ', '.join(methods) for path, methods in handler.ROUTE_DECLARATIONS.items()}
        provider = '/resource_providers/{uuid}'
        self.assertEqual(
            {
                '': 'GET',
                '/': 'GET',
                '/resource_classes': 'GET, POST',
                '/resource_classes/{name}': 'GET, PUT, DELETE',
                '/resource_providers': 'GET, POST',
                provider: 'GET, DELETE, PUT',
                f'{provider}/inventories': 'GET, POST, PUT, DELETE',
                f'{provider}/inventories/{{resource_class}}': 'GET, PUT, DELETE',
                f'{provider}/usages': 'GET',
                f'{provider}/aggregates': 'GET, PUT',
                f'{provider}/allocations': 'GET',
                '/allocations': 'POST',
                '/allocations/{consumer_uuid}': 'GET, PUT, DELETE',
                '/allocation_candidates': 'GET',
                '/traits': 'GET',
                '/traits/{name}': 'GET, PUT, DELETE',
                f'{provider}/traits': 'GET, PUT, DELETE',
                '/usages': 'GET',
                '/reshaper': 'POST',
            },
            allowed,
        )
