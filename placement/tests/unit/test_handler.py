"""Routing, and the checks of Content-Length, Content-Type, and a lost query string."""

import ddt
from oslotest import base

from placement import deploy, handler, microversion
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


@ddt.ddt
class RoutingTest(base.BaseTestCase):
    application = handler.PlacementHandler(ROUTES)

    def send(self, path, method='GET', **more):
        return edge.call(self.application, edge.environ(method, path, **more))

    @ddt.data(
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
    )
    @ddt.unpack
    def test_found(self, path, parameters):
        response = self.send(path)
        self.assertEqual(200, response.status)
        self.assertEqual(repr(parameters), response.body.decode())

    @ddt.data(
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
    )
    def test_not_found(self, path):
        response = self.send(path)
        self.assertEqual(404, response.status)
        self.assertTrue(response.error['detail'])

    def test_wrong_method(self):
        for method in ('DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'get'):
            response = self.send('/things/a', method)
            self.assertEqual(405, response.status)
            self.assertEqual('GET, PUT', response.headers['allow'])

    def test_content_length_must_be_a_number(self):
        self.assertEqual(400, self.send('/nowhere', CONTENT_LENGTH='many').status)

    def test_a_body_needs_a_content_type(self):
        self.assertEqual(400, self.send('/nowhere', CONTENT_LENGTH='1').status)
        self.assertEqual(400, self.send('/', CONTENT_LENGTH='1', CONTENT_TYPE='').status)
        self.assertEqual(200, self.send('/', CONTENT_LENGTH='0').status)
        self.assertEqual(200, self.send('/', CONTENT_LENGTH='1', CONTENT_TYPE='x/y').status)


@ddt.ddt
class LostQueryTest(base.BaseTestCase):
    """The web server passes on the URL, but not its query string."""

    def setUp(self):
        super().setUp()
        self.application = deploy.build(edge.configuration())

    def send(self, url, version='latest', **more):
        environ = edge.environ(
            path='/resource_providers',
            REQUEST_URI=url,
            HTTP_X_AUTH_TOKEN='admin',
            HTTP_OPENSTACK_API_VERSION=f'placement {version}',
            **more,
        )
        return edge.call(self.application, environ)

    @ddt.data(
        '/placement/resource_providers?name=one',
        'http://host/resource_providers?x',
        '/resource_providers??',
    )
    def test_the_request_is_refused(self, url):
        response = self.send(url)
        self.assertEqual(414, response.status)
        self.assertEqual('placement.undefined_code', response.error['code'])
        self.assertEqual('Request-URI Too Long', response.error['title'])
        self.assertIn('discarded the query string', response.error['detail'])
        self.assertNotIn('code', self.send(url, '1.22').error)
        environ = edge.at(microversion.MAX_VERSION, path='/things', REQUEST_URI=url)
        del environ['QUERY_STRING']
        self.assertEqual(414, edge.call(handler.PlacementHandler(ROUTES), environ).status)

    @ddt.data('/things', '/things?', '/things#a?b', '')
    def test_a_url_without_a_query(self, url):
        environ = edge.environ(path='/things', REQUEST_URI=url)
        self.assertEqual(200, edge.call(handler.PlacementHandler(ROUTES), environ).status)

    def test_a_query_that_is_not_lost(self):
        environ = edge.environ(path='/things', REQUEST_URI='/things?a=1', QUERY_STRING='a=1')
        self.assertEqual(200, edge.call(handler.PlacementHandler(ROUTES), environ).status)

    def test_the_health_check_has_no_query(self):
        environ = edge.environ(path='/healthcheck', REQUEST_URI='/healthcheck?x=1')
        # The database of the test has no tables.
        self.assertEqual(503, edge.call(self.application, environ).status)


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

    def test_every_handler_has_a_docstring(self):
        for methods in handler.ROUTE_DECLARATIONS.values():
            for application in methods.values():
                self.assertTrue(application.operation.handler.__doc__)

    def test_a_path_of_a_later_microversion_does_not_exist(self):
        """The response does not reveal that the path exists in a later microversion."""
        application = handler.PlacementHandler()
        paths = ('/nowhere', '/traits', '/usages', '/allocation_candidates')
        errors = [
            edge.call(application, edge.at(microversion.MIN_VERSION, path=path)).error
            for path in paths
        ]
        self.assertEqual(404, errors[0]['status'])
        self.assertEqual([errors[0]] * len(paths), errors)

    def test_a_method_of_a_later_microversion_is_not_allowed(self):
        environ = edge.at(
            microversion.DELETE_INVENTORIES.before(),
            method='DELETE',
            path='/resource_providers/a/inventories',
        )
        response = edge.call(handler.PlacementHandler(), environ)
        self.assertEqual(405, response.status)
        self.assertNotIn('allow', response.headers)

    def test_the_version_document(self):
        environ = edge.at(microversion.MAX_VERSION, path='/')
        response = edge.call(handler.PlacementHandler(), environ)
        (version,) = response.json['versions']
        self.assertEqual(
            ('1.0', microversion.VERSIONS[-1]), (version['min_version'], version['max_version'])
        )
