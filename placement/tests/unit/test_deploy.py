"""The layers of the WSGI application and their order."""

import logging
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_context import context
from oslo_middleware import cors, http_proxy_to_wsgi
from oslotest import base

from placement import (
    auth,
    body_limit,
    deploy,
    endpoints,
    exception,
    handler,
    health,
    negotiation,
    requestlog,
)
from placement.http import reply
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn


def names(application):
    """Return the class names of the layers, from the outermost to the innermost."""
    layers = []
    while application is not None:
        layers.append(type(application).__name__)
        application = getattr(application, 'application', None)
    return layers


class LayersTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = edge.configuration()

    def test_layers_without_options(self):
        self.assertEqual(
            [
                'FaultWrapper',
                'RequestLog',
                'FaultWrapper',
                'Endpoints',
                'BodyLimit',
                'NoAuthMiddleware',
                'ContextMiddleware',
                'FaultWrapper',
                'MicroversionMiddleware',
                'PlacementHandler',
            ],
            names(deploy.build(self.conf)),
        )

    def test_keystone(self):
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        self.assertEqual('KeystoneMiddleware', names(deploy.build(self.conf))[5])

    def test_cors_comes_before_authentication(self):
        self.conf.set_override('allowed_origin', ['http://here'], 'cors')
        self.assertEqual(
            ['Endpoints', 'BodyLimit', 'CORS', 'NoAuthMiddleware'],
            names(deploy.build(self.conf))[3:7],
        )

    def test_metrics_are_about_requests_for_the_api(self):
        self.conf.set_override('enabled', True, 'metrics')
        self.assertEqual(
            ['FaultWrapper', 'RequestLog', 'FaultWrapper', 'Endpoints', 'RequestMetrics'],
            names(deploy.build(self.conf))[:5],
        )

    def test_metrics_need_no_token(self):
        self.useFixture(SwitchedOn())
        for enabled, status in ((True, 200), (False, 401)):
            self.conf.set_override('enabled', enabled, 'metrics')
            response = edge.call(deploy.build(self.conf), edge.environ(path='/metrics'))
            self.assertEqual(status, response.status)
            response = edge.call(deploy.build(self.conf), edge.environ('POST', path='/metrics'))
            self.assertEqual(405 if enabled else 401, response.status)

    def test_proxy_headers_come_before_the_log(self):
        self.conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        self.assertEqual(
            ['FaultWrapper', 'HTTPProxyToWSGI', 'RequestLog'],
            names(deploy.build(self.conf))[:3],
        )

    def test_the_profiler_is_the_outermost_layer(self):
        for enabled, expected in (
            (True, ['Profiler', 'FaultWrapper']),
            (False, ['FaultWrapper', 'RequestLog']),
        ):
            initializer = self.install_profiler(enabled)
            self.assertEqual(expected, names(deploy.build(self.conf))[:2])
            self.assertEqual(int(enabled), initializer.init_from_conf.call_count)

    def install_profiler(self, enabled: bool) -> mock.Mock:
        """Replace osprofiler, which is an optional requirement; return its initializer."""

        class Profiler:
            def __init__(self, application):
                self.application = application

        initializer = mock.Mock()
        for name, value in (
            ('profiler', mock.Mock(WsgiMiddleware=Profiler)),
            ('profiler_initializer', initializer),
        ):
            patch = mock.patch.object(deploy, name, value, create=True)
            patch.start()
            self.addCleanup(patch.stop)
        if 'profiler' not in self.conf:
            self.conf.register_opt(cfg.BoolOpt('enabled'), 'profiler')
        self.conf.set_override('enabled', enabled, 'profiler')
        return initializer

    def test_proxy_headers_follow_the_given_configuration(self):
        # In the process-wide configuration, each option is unregistered or has its default value.
        self.conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        received = {}

        def inside(environ, start_response):
            received.update(environ)
            return edge.ok(environ, start_response)

        application = deploy.build(self.conf)
        self.assertIsInstance(application.application, http_proxy_to_wsgi.HTTPProxyToWSGI)
        application.application.application = inside
        edge.call(
            application,
            edge.environ(
                HTTP_X_FORWARDED_HOST='elsewhere',
                HTTP_X_FORWARDED_PREFIX='/mount',
                HTTP_X_FORWARDED_FOR='192.0.2.9',
            ),
        )
        self.assertEqual('elsewhere', received['HTTP_HOST'])
        self.assertEqual('/mount', received['SCRIPT_NAME'])
        self.assertEqual('192.0.2.9', received['REMOTE_ADDR'])

    def test_an_invalid_forwarded_host_is_ignored(self):
        self.conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        locations = []

        def inside(environ, start_response):
            locations.append(reply.absolute_url(environ, '/traits'))
            return edge.ok(environ, start_response)

        application = deploy.build(self.conf)
        self.assertIsInstance(application.application, http_proxy_to_wsgi.HTTPProxyToWSGI)
        application.application.application = inside
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

    def test_a_request_through_all_layers(self):
        response = edge.call(deploy.build(self.conf), edge.environ(path='/'))
        self.assertEqual(200, response.status)
        self.assertEqual('placement 1.0', response.headers['openstack-api-version'])
        self.assertIn('x-openstack-request-id', response.headers)

    def test_authentication_comes_before_the_microversion(self):
        for headers, status in (
            ({}, 401),
            ({'HTTP_X_AUTH_TOKEN': 'admin'}, 406),
        ):
            environ = edge.environ(
                path='/nowhere', HTTP_OPENSTACK_API_VERSION='placement 9.9', **headers
            )
            response = edge.call(deploy.build(self.conf), environ)
            self.assertEqual(status, response.status)
            self.assertIn('x-openstack-request-id', response.headers)
            self.assertNotIn('openstack-api-version', response.headers)


class StartTest(base.BaseTestCase):
    """The start of a service that cannot record metrics."""

    def setUp(self):
        super().setUp()
        self.conf = edge.configuration()
        self.conf.set_override('enabled', True, 'metrics')
        self.useFixture(fixtures.MonkeyPatch('placement.telemetry._instruments', None))

    def failure(self) -> str:
        """Return the message of the exception that prevents the start."""
        return str(self.assertRaises(exception.MetricsUnavailable, deploy.loadapp, self.conf))

    def test_without_the_library(self):
        with mock.patch('importlib.util.find_spec', return_value=None):
            self.assertEqual(
                '[metrics] enabled needs the library prometheus_client: run '
                "pip install 'openstack-placement[metrics]'",
                self.failure(),
            )

    def test_without_the_directory(self):
        with fixtures.EnvironmentVariable('PROMETHEUS_MULTIPROC_DIR', '/no/such/directory'):
            self.assertEqual(
                'The directory "/no/such/directory", which the environment variable '
                'PROMETHEUS_MULTIPROC_DIR names, cannot be used: No such file or directory',
                self.failure(),
            )


class FailuresTest(base.BaseTestCase):
    """An unexpected exception in any layer is a 500 with an error document, and is logged."""

    def setUp(self):
        super().setUp()
        config = edge.configuration()
        config.set_override('allowed_origin', ['http://here'], 'cors')
        config.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')
        self.application = deploy.build(config)

    def fail_in(self, layer: type, method: str = '__call__', path: str = '/nowhere') -> str:
        """Send a request that fails in a layer, check its response, and return the log."""
        # The ID of the previous request of this thread
        context.RequestContext(request_id='req-old')
        failure = mock.patch.object(layer, method, side_effect=ValueError('secret SQL'))
        with fixtures.FakeLogger('placement', logging.INFO) as log, failure:
            response = edge.call(
                self.application, edge.environ(path=path, HTTP_X_AUTH_TOKEN='admin')
            )
        self.assertEqual((500, layer), (response.status, layer))
        self.assertEqual('application/json', response.headers['content-type'])
        self.assertEqual(response.error['request_id'], response.headers['x-openstack-request-id'])
        self.assertEqual(response.error['request_id'], context.get_current().request_id)
        self.assertNotIn(b'secret', response.body)
        lines = log.output.splitlines()
        self.assertEqual(1, lines.count('Unexpected failure of a request'))
        self.assertEqual(1, lines.count('ValueError: secret SQL'))
        return str(log.output)

    def test_layers_outside_of_the_request_log(self):
        for layer in (http_proxy_to_wsgi.HTTPProxyToWSGI, requestlog.RequestLog):
            self.assertNotIn('status: 500', self.fail_in(layer))

    def test_layers_inside_of_the_request_log(self):
        for layer in (
            endpoints.Endpoints,
            body_limit.BodyLimit,
            cors.CORS,
            auth.NoAuthMiddleware,
            auth.ContextMiddleware,
            negotiation.MicroversionMiddleware,
            handler.PlacementHandler,
        ):
            self.assertIn('"GET /nowhere" status: 500', self.fail_in(layer))

    def test_the_health_check(self):
        self.fail_in(health.DatabaseHealthcheck, 'healthcheck', '/healthcheck')

    def test_a_failure_of_the_request_log_does_not_fail_the_request(self):
        failure = mock.patch.object(requestlog, '_uri', side_effect=ValueError('secret'))
        with fixtures.FakeLogger('placement', logging.INFO) as log, failure:
            response = edge.call(self.application, edge.environ(path='/'))
        self.assertEqual(200, response.status)
        self.assertEqual(1, log.output.count('Failed to log a request'))
