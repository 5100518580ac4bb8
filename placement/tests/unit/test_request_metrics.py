"""The route, the method and the status class of measured requests."""

from oslotest import base

from placement import deploy
from placement.requestlog import RequestMetrics
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn

DURATION = 'placement_http_request_duration_seconds'
IN_PROGRESS = 'placement_http_requests_in_progress'
ADMIN = {'HTTP_X_AUTH_TOKEN': 'admin'}


class LabelsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.metrics = self.useFixture(SwitchedOn())
        conf = edge.configuration()
        conf.set_override('enabled', True, 'metrics')
        self.application = deploy.build(conf)

    def counted(self) -> list[tuple[str, str, str]]:
        """Return the route, the method and the status class of the measured requests."""
        return [
            (label['route'], label['method'], label['status'])
            for (name, labels), value in self.metrics.samples().items()
            if name == f'{DURATION}_count' and value == 1
            for label in [dict(labels)]
        ]

    def test_requests(self):
        for environ, expected in (
            (edge.environ(), ('/', 'GET', '2xx')),
            (edge.environ(path='', HTTP_ACCEPT='*/*', REQUEST_METHOD='PUT'), ('/', 'PUT', '4xx')),
            (edge.environ(path='/nowhere/x', **ADMIN), ('unmatched', 'GET', '4xx')),
            (edge.environ(path='/traits/\xe4\x00', **ADMIN), ('/traits/{name}', 'GET', '4xx')),
            (edge.environ('BREW', '/traits/A', **ADMIN), ('/traits/{name}', 'other', '4xx')),
            (edge.environ('PATCH', '/traits/A', **ADMIN), ('/traits/{name}', 'PATCH', '4xx')),
        ):
            before = self.counted()
            edge.call(self.application, environ)
            self.assertEqual([expected], sorted(set(self.counted()) - set(before)))
        labels = dict(zip(('route', 'method', 'status'), expected, strict=True))
        self.assertLess(0, self.metrics.value(f'{DURATION}_sum', **labels))

    def test_requests_that_middleware_rejects_have_a_route(self):
        """401 Unauthorized, 406 Not Acceptable, and 413 Request Entity Too Large."""
        future = {'HTTP_OPENSTACK_API_VERSION': 'placement 9.9'}
        for status, environ in (
            (401, edge.environ(path='/usages')),
            (406, edge.environ(path='/reshaper', **ADMIN, **future)),
            (413, edge.environ('POST', path='/allocations', CONTENT_LENGTH=str(2**30))),
        ):
            self.assertEqual(status, edge.call(self.application, environ).status)
        self.assertEqual(
            [
                ('/allocations', 'POST', '4xx'),
                ('/reshaper', 'GET', '4xx'),
                ('/usages', 'GET', '4xx'),
            ],
            sorted(self.counted()),
        )

    def test_requests_for_the_metrics_are_not_measured(self):
        self.assertEqual(200, edge.call(self.application, edge.environ(path='/metrics')).status)
        self.assertEqual([], self.counted())

    def test_requests_in_progress(self):
        during = []

        def application(environ, start_response):
            during.append(self.metrics.value(IN_PROGRESS))
            return edge.ok(environ, start_response)

        edge.call(RequestMetrics(application, lambda environ: '/'), edge.environ())
        self.assertEqual([1], during)
        self.assertEqual(0, self.metrics.value(IN_PROGRESS))

    def test_an_exception_is_a_server_error(self):
        """The web server returns 500 Internal Server Error."""

        def at_once(environ, start_response):
            raise KeyError('x')

        def after_the_start(environ, start_response):
            start_response('200 OK', [])
            raise KeyError('x')

        for path, application in (('/a', at_once), ('/b', after_the_start)):
            measured = RequestMetrics(application, lambda environ: environ['PATH_INFO'])
            self.assertRaises(KeyError, edge.call, measured, edge.environ(path=path))
        self.assertEqual([('/a', 'GET', '5xx'), ('/b', 'GET', '5xx')], sorted(self.counted()))
        self.assertEqual(0, self.metrics.value(IN_PROGRESS))
