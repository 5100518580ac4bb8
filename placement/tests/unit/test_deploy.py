"""Which layers there are, and in which order a request meets them."""

from oslo_config import cfg
from oslotest import base

from placement import conf, deploy, util
from placement.tests.unit import edge


def names(application):
    """The names of the layers, the outermost first."""
    found = []
    while application is not None:
        found.append(type(application).__name__)
        application = getattr(application, 'application', None)
    return found


class LayersTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.conf.set_default('connection', 'sqlite://', 'placement_database')
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('auth_strategy', 'noauth2', 'api')

    def test_what_is_always_there(self):
        self.assertEqual(
            [
                'RequestLog',
                'BodyLimit',
                'NoAuthMiddleware',
                'ContextMiddleware',
                'FaultWrapper',
                'MicroversionMiddleware',
                'PlacementHandler',
            ],
            names(deploy._build(self.conf)),
        )

    def test_keystone(self):
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        self.assertEqual('KeystoneMiddleware', names(deploy._build(self.conf))[2])

    def test_cors_comes_before_authentication(self):
        self.conf.set_override('allowed_origin', ['http://here'], 'cors')
        self.assertEqual(
            ['RequestLog', 'BodyLimit', 'CORS', 'NoAuthMiddleware'],
            names(deploy._build(self.conf))[:4],
        )

    def test_proxy_headers_come_before_the_log(self):
        self.conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        self.assertEqual(['HTTPProxyToWSGI', 'RequestLog'], names(deploy._build(self.conf))[:2])

    def test_the_given_configuration_decides_about_proxy_headers(self):
        # Every option of a process-wide object would be absent or at its default.
        self.conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        seen = {}

        def inside(environ, start_response):
            seen.update(environ)
            return edge.says(environ, start_response)

        application = deploy._build(self.conf)
        application.application = inside
        edge.call(
            application,
            edge.environ(
                HTTP_X_FORWARDED_HOST='elsewhere',
                HTTP_X_FORWARDED_PREFIX='/mount',
                HTTP_X_FORWARDED_FOR='192.0.2.9',
            ),
        )
        self.assertEqual('elsewhere', seen['HTTP_HOST'])
        self.assertEqual('/mount', seen['SCRIPT_NAME'])
        self.assertEqual('192.0.2.9', seen['REMOTE_ADDR'])

    def test_a_forwarded_host_that_cannot_be_one_is_not_used(self):
        self.conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        locations = []

        def inside(environ, start_response):
            locations.append(util.absolute_url(environ, '/traits'))
            return edge.says(environ, start_response)

        application = deploy._build(self.conf)
        application.application = inside
        for headers in (
            {'HTTP_X_FORWARDED_HOST': 'a"><script>', 'HTTP_X_FORWARDED_PROTO': 'https'},
            {'HTTP_FORWARDED': 'host=u@h;proto=https'},
            {'HTTP_X_FORWARDED_HOST': 'cloud.example.com', 'HTTP_X_FORWARDED_PROTO': 'x:'},
        ):
            edge.call(application, edge.environ(HTTP_HOST='here', **headers))
        self.assertEqual(
            ['https://host:80/traits', 'https://host:80/traits', 'http://cloud.example.com/traits'],
            locations,
        )

    def test_a_whole_trip(self):
        answer = edge.call(deploy._build(self.conf), edge.environ(path='/'))
        self.assertEqual(200, answer.status)
        self.assertEqual('placement 1.0', answer.headers['openstack-api-version'])
        self.assertIn('x-openstack-request-id', answer.headers)

    def test_authentication_comes_before_the_microversion(self):
        for headers, status in (
            ({}, 401),
            ({'HTTP_X_AUTH_TOKEN': 'admin'}, 406),
        ):
            environ = edge.environ(
                path='/nowhere', HTTP_OPENSTACK_API_VERSION='placement 9.9', **headers
            )
            answer = edge.call(deploy._build(self.conf), environ)
            self.assertEqual(status, answer.status)
            self.assertIn('x-openstack-request-id', answer.headers)
            self.assertNotIn('openstack-api-version', answer.headers)
