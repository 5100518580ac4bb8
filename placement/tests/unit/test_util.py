"""What code outside of this repository imports: decorators of handlers, and `placement.util`."""

import datetime
from types import SimpleNamespace

from oslotest import base
import webob

from placement import exception, microversion, util, wsgi_wrapper
from placement.http import JSON
from placement.microversion import Version
from placement.tests.unit import edge

LATEST = microversion.MAX_VERSION


class HandlerTest(base.BaseTestCase):
    """Handlers of requests of WebOb."""

    @staticmethod
    @wsgi_wrapper.PlacementWsgify
    @util.require_content(JSON)
    def writes(req):
        return webob.Response(json_body=util.extract_json(req, {'type': 'array'}))

    @staticmethod
    @wsgi_wrapper.PlacementWsgify
    @util.check_accept(JSON)
    def reads(req):
        return webob.Response(f'hello {req.method}')

    def test_a_response(self):
        response = edge.call(self.reads, edge.at(LATEST))
        self.assertEqual((200, b'hello GET'), (response.status, response.body))
        # A request object returns a response object.
        self.assertEqual('hello GET', self.reads(webob.Request(edge.at(LATEST))).text)

    def test_the_body(self):
        for body, content_type, status in (
            (b'[1]', 'application/json; charset=utf-8', 200),
            (b'[', 'application/json', 400),
            (b'{}', 'application/json', 400),
            (b'[1]', 'application/jsonx', 415),
            (b'[1]', '', 415),
        ):
            environ = edge.at(LATEST, body=body, CONTENT_TYPE=content_type)
            response = edge.call(self.writes, environ)
            self.assertEqual(status, response.status)
            if status == 415:
                self.assertIn(content_type or 'None', response.error['detail'])
                self.assertIn(JSON, response.error['detail'])

    def test_the_accepted_media_types(self):
        for accept, status in (('', 200), ('text/html,*/*;q=0.8', 200), ('text/html', 406)):
            response = edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT=accept))
            self.assertEqual(status, response.status, accept)

    def test_the_implementation_for_the_microversion_is_called(self):
        @microversion.version_handler(Version(1, 2), Version(1, 3))
        def handle(req):
            return 'old'

        @microversion.version_handler(Version(1, 4))
        def handle(req):  # noqa: F811  # version_handler combines functions of one name
            return 'new'

        @microversion.version_handler(Version(1, 4), path_is_older=True)
        def handle_new_method(req):
            return 'new'

        def request(minor):
            environ = {'REQUEST_METHOD': 'PUT', microversion.ENVIRON_KEY: Version(1, minor)}
            return SimpleNamespace(environ=environ)

        for minor, expected in ((2, 'old'), (3, 'old'), (4, 'new'), (38, 'new')):
            self.assertEqual(expected, handle(request(minor)))
        self.assertRaises(exception.RouteNotFound, handle, request(1))
        error = self.assertRaises(exception.MethodNotAllowed, handle_new_method, request(3))
        self.assertIn('PUT', str(error))


class LastModifiedTest(base.BaseTestCase):
    def test_pick_last_modified(self):
        early = datetime.datetime(2020, 2, 3, 4, 5, 6)
        late = early + datetime.timedelta(days=1)
        aware_early, aware_late = (one.replace(tzinfo=datetime.UTC) for one in (early, late))
        for before, created, updated, expected in (
            (None, early, None, aware_early),
            (None, early, late, aware_late),
            (aware_late, early, None, aware_late),
            (aware_early, late, None, aware_late),
        ):
            item = SimpleNamespace(created_at=created, updated_at=updated)
            self.assertEqual(expected, util.pick_last_modified(before, item))
        # An item without times was changed now.
        item = SimpleNamespace(created_at=None, updated_at=None)
        self.assertLess(aware_late, util.pick_last_modified(aware_late, item))
