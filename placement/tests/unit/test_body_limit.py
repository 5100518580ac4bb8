"""The limit on the size of request bodies."""

import io

from oslo_config import cfg
from oslotest import base

from placement import body_limit, conf, deploy, microversion, util, wsgi_wrapper
from placement.tests.unit import edge

LIMIT = 10


class Source(io.BytesIO):
    """A body that comes in small parts, like one in chunks."""

    def read(self, size=-1):
        return super().read(3 if size < 0 else min(size, 3))


@wsgi_wrapper.PlacementWsgify
def echo(req):
    return util.json_reply(req, len(util.read_body(req.environ)), cached=False)


class BodyLimitTest(base.BaseTestCase):
    application = staticmethod(body_limit.BodyLimit(echo, LIMIT))

    def send(self, **more):
        return edge.call(self.application, edge.at(microversion.MAX_VERSION, **more))

    def chunked(self, body):
        return self.send(**{'wsgi.input': Source(body), 'wsgi.input_terminated': True})

    def test_an_announced_body(self):
        self.assertEqual(LIMIT, self.send(body=b'x' * LIMIT).json)
        refusal = self.send(body=b'x' * (LIMIT + 1))
        self.assertEqual(413, refusal.status)
        self.assertEqual(413, refusal.error['status'])
        self.assertIn('10 bytes', refusal.error['detail'])

    def test_a_larger_body_is_not_read(self):
        source = io.BytesIO(b'x' * 100)
        self.send(**{'wsgi.input': source, 'CONTENT_LENGTH': '100'})
        self.assertEqual(0, source.tell())

    def test_a_body_without_a_length(self):
        self.assertEqual(LIMIT, self.chunked(b'x' * LIMIT).json)
        refusal = self.chunked(b'x' * (LIMIT + 1))
        self.assertEqual(413, refusal.status)
        self.assertEqual(413, refusal.error['status'])

    def test_no_more_than_the_limit_is_read_of_a_body_without_a_length(self):
        source = Source(b'x' * 1000)
        self.send(**{'wsgi.input': source, 'wsgi.input_terminated': True})
        self.assertLessEqual(source.tell(), LIMIT + 1)

    def test_a_length_that_is_no_number_is_for_the_handler(self):
        def seen(environ, start_response):
            return edge.says(environ, start_response)

        application = body_limit.BodyLimit(seen, LIMIT)
        for text in ('three', '9' * 5000):
            self.assertEqual(
                200, edge.call(application, edge.environ(CONTENT_LENGTH=text)).status, text
            )


class PlaceTest(base.BaseTestCase):
    """The limit lies between the request log and all that examines the client."""

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.conf.set_default('connection', 'sqlite://', 'placement_database')
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('auth_strategy', 'noauth2', 'api')

    def answer(self, length, **more):
        environ = edge.environ('POST', '/nowhere', CONTENT_LENGTH=str(length), **more)
        return edge.call(deploy._build(self.conf), environ)

    def test_it_needs_no_token(self):
        refusal = self.answer(1024 * 1024 + 1, HTTP_OPENSTACK_API_VERSION='placement 9.9')
        self.assertEqual(413, refusal.status)
        self.assertEqual(refusal.headers['x-openstack-request-id'], refusal.error['request_id'])
        self.assertNotIn('openstack-api-version', refusal.headers)
        self.assertEqual(401, self.answer(1024 * 1024).status)

    def test_it_can_be_configured(self):
        self.conf.set_override('max_request_body_size', 5, 'oslo_middleware')
        self.assertEqual(413, self.answer(6).status)
        self.assertEqual(401, self.answer(5).status)
