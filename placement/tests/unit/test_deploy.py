"""The layers of the WSGI application and their order."""

import logging
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_context import context
from oslo_middleware import cors
from oslotest import base

from placement import (
    auth,
    deploy,
    exception,
    handler,
    health,
    microversion,
)
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn


class LayersTest(base.BaseTestCase):
    """gabbi/order-of-layers.yaml and cors.yaml test the order of the other layers."""

    def setUp(self):
        super().setUp()
        self.conf = edge.configuration()

    def send(self, method: str = 'GET', path: str = '/', **headers: str) -> edge.Response:
        """Send a request to a new application."""
        return edge.call(deploy.build(self.conf), edge.environ(method, path, **headers))

    def test_metrics_need_no_token(self):
        self.useFixture(SwitchedOn())
        for enabled, statuses in ((True, (200, 405)), (False, (401, 401))):
            self.conf.set_override('enabled', enabled, 'metrics')
            for method, status in zip(('GET', 'POST'), statuses, strict=True):
                self.assertEqual(status, self.send(method, '/metrics').status)

    def test_proxy_headers_come_before_the_log(self):
        """The given configuration counts: in that of the process, the option is not registered."""
        for enabled, written in ((True, '192.0.2.9 "GET /mount/"'), (False, '- "GET /"')):
            self.conf.set_override('enable_proxy_headers_parsing', enabled, 'oslo_middleware')
            proxy = {'HTTP_X_FORWARDED_PREFIX': '/mount', 'HTTP_X_FORWARDED_FOR': '192.0.2.9'}
            with fixtures.FakeLogger('placement.requestlog', logging.INFO) as log:
                self.send(**proxy)
            self.assertIn(written, log.output)

    def test_the_profiler_is_the_outermost_layer(self):
        """Osprofiler is an optional requirement."""
        self.conf.register_opt(cfg.BoolOpt('enabled'), 'profiler')
        for enabled in (True, False):
            self.conf.set_override('enabled', enabled, 'profiler')
            modules = {
                'profiler': mock.Mock(WsgiMiddleware=lambda application: ('profiled', application)),
                'profiler_initializer': mock.Mock(),
            }
            with mock.patch.multiple(deploy, create=True, **modules):
                application = deploy.build(self.conf)
            self.assertEqual(enabled, isinstance(application, tuple))
            initialized = modules['profiler_initializer'].init_from_conf.call_count
            self.assertEqual(int(enabled), initialized)


class StartTest(base.BaseTestCase):
    """The start of a service that cannot record metrics."""

    def setUp(self):
        super().setUp()
        self.conf = edge.configuration()
        self.conf.set_override('enabled', True, 'metrics')
        self.useFixture(fixtures.MonkeyPatch('placement.telemetry._application', None))

    def failure(self) -> str:
        """Return the message of the exception that prevents the start."""
        return str(self.assertRaises(exception.MetricsUnavailable, deploy.loadapp, self.conf))

    def test_without_the_library(self):
        with mock.patch.dict('sys.modules', {'prometheus_client': None}):
            self.assertEqual(
                '[metrics] enabled needs the library prometheus_client: run '
                "pip install 'openstack-placement[metrics]'",
                self.failure(),
            )

    def test_without_the_directory(self):
        for directory, reason in (
            ('/no/such/directory', 'No such file or directory'),
            (__file__, 'File exists'),
            ('', 'The variable is empty'),
        ):
            with fixtures.EnvironmentVariable('PROMETHEUS_MULTIPROC_DIR', directory):
                self.assertEqual(
                    f'The directory "{directory}", which the environment variable '
                    f'PROMETHEUS_MULTIPROC_DIR names, cannot be used: {reason}',
                    self.failure(),
                )


class FailuresTest(base.BaseTestCase):
    """An unexpected exception in any layer is a 500 with an error document, and is logged."""

    def setUp(self):
        super().setUp()
        config = edge.configuration()
        config.set_override('allowed_origin', ['http://here'], 'cors')
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

    def test_every_layer_inside_of_the_request_log(self):
        for layer in (
            deploy.Endpoints,
            deploy.BodyLimit,
            cors.CORS,
            auth.NoAuthMiddleware,
            auth.ContextMiddleware,
            microversion.MicroversionMiddleware,
            handler.PlacementHandler,
        ):
            self.assertIn('"GET /nowhere" status: 500', self.fail_in(layer))

    def test_web_pages_of_other_origins_can_read_the_failure_of_a_handler(self):
        environ = edge.environ(HTTP_X_AUTH_TOKEN='admin', HTTP_ORIGIN='http://here')
        with mock.patch.object(handler.PlacementHandler, '__call__', side_effect=ValueError):
            response = edge.call(self.application, environ)
        self.assertEqual(500, response.status)
        self.assertEqual('http://here', response.headers['access-control-allow-origin'])

    def test_the_health_check(self):
        self.fail_in(health.DatabaseHealthcheck, 'healthcheck', '/healthcheck')
