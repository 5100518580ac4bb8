"""The limit on the size of request bodies."""

import io
from unittest import mock

from oslotest import base
import webob

from placement import deploy, microversion, util, wsgi_wrapper
from placement.http import ENVIRON_CONTEXT
from placement.tests.unit import edge

LIMIT = 10


class Source(io.BytesIO):
    """A body that arrives in small parts, as with chunked transfer encoding."""

    def read(self, size=-1):
        return super().read(3 if size < 0 else min(size, 3))


@wsgi_wrapper.PlacementWsgify
def echo(req):
    return webob.Response(json_body=len(str(util.extract_json(req, {}))))


class BodyLimitTest(base.BaseTestCase):
    application = staticmethod(deploy.BodyLimit(echo, LIMIT))

    def send(self, **more):
        config = edge.configuration()
        config.set_override('max_request_body_size', LIMIT, 'oslo_middleware')
        environ = edge.at(microversion.MAX_VERSION, **more)
        environ[ENVIRON_CONTEXT] = mock.Mock(config=config)
        return edge.call(self.application, environ)

    def chunked(self, body):
        return self.send(**{'wsgi.input': Source(body), 'wsgi.input_terminated': True})

    def test_an_announced_body(self):
        self.assertEqual(LIMIT, self.send(body=b'1' * LIMIT).json)
        response = self.send(body=b'1' * (LIMIT + 1))
        self.assertEqual(413, response.status)
        self.assertEqual(413, response.error['status'])
        self.assertIn('10 bytes', response.error['detail'])

    def test_a_larger_body_is_not_read(self):
        source = io.BytesIO(b'1' * 100)
        self.send(**{'wsgi.input': source, 'CONTENT_LENGTH': '100'})
        self.assertEqual(0, source.tell())

    def test_a_body_without_a_length(self):
        self.assertEqual(LIMIT, self.chunked(b'1' * LIMIT).json)
        response = self.chunked(b'1' * (LIMIT + 1))
        self.assertEqual(413, response.status)
        self.assertEqual(413, response.error['status'])

    def test_no_more_than_the_limit_is_read_of_a_body_without_a_length(self):
        source = Source(b'1' * 1000)
        self.send(**{'wsgi.input': source, 'wsgi.input_terminated': True})
        self.assertLessEqual(source.tell(), LIMIT + 1)

    def test_the_chunks_of_uwsgi(self):
        chunks = [b'', b'1' * (LIMIT - 3), b'111']
        uwsgi = {'HTTP_TRANSFER_ENCODING': 'Chunked', 'wsgi.input': io.BytesIO()}
        with mock.patch('placement.http.request.chunked_read', chunks.pop):
            self.assertEqual(LIMIT, self.send(**uwsgi).json)
            chunks += [b'', b'1' * 100, b'111']
            self.assertEqual(413, self.send(**uwsgi).status)
            # A web server in front of uWSGI has sent the length.
            self.assertEqual(400, self.send(CONTENT_LENGTH='0', **uwsgi).status)

    def test_the_dispatcher_checks_a_length_that_is_not_a_number(self):
        application = deploy.BodyLimit(edge.ok, LIMIT)
        for text in ('three', '9' * 5000):
            self.assertEqual(
                200, edge.call(application, edge.environ(CONTENT_LENGTH=text)).status, text
            )


class OptionTest(base.BaseTestCase):
    def test_the_limit_is_configurable(self):
        config = edge.configuration()
        config.set_override('max_request_body_size', 5, 'oslo_middleware')
        for length, status in ((6, 413), (5, 401)):
            environ = edge.environ('POST', '/nowhere', CONTENT_LENGTH=str(length))
            self.assertEqual(status, edge.call(deploy.build(config), environ).status)
