"""The response of /metrics to different Accept headers."""

import ddt
from oslotest import base
import prometheus_client

from placement.telemetry import instruments


@ddt.ddt
class AcceptTest(base.BaseTestCase):
    def serve(self, accept: str, method: str = 'GET') -> tuple[str, str, bytes]:
        started: list[tuple[str, dict[str, str]]] = []
        environ = {
            'REQUEST_METHOD': method,
            'PATH_INFO': '/metrics',
            'QUERY_STRING': '',
            'HTTP_ACCEPT': accept,
        }
        body = instruments.serve(
            prometheus_client.CollectorRegistry(),
            environ,
            lambda status, headers: started.append((status, dict(headers))),
        )
        ((status, headers),) = started
        return status, headers['Content-Type'], b''.join(body)

    def test_the_client_selects_the_format(self) -> None:
        status, content_type, body = self.serve('application/openmetrics-text; version=1.0.0')
        self.assertEqual(('200 OK', b'# EOF\n'), (status, body))
        self.assertIn('openmetrics', content_type)

    @ddt.data('text/plain; version=latest', 'application/openmetrics-text; version=1.x')
    def test_a_version_that_is_not_a_number_is_ignored(self, accept: str) -> None:
        status, content_type, _ = self.serve(accept)
        self.assertEqual('200 OK', status)
        self.assertIn('text/plain', content_type)

    def test_head_has_no_body(self) -> None:
        self.assertEqual(b'', self.serve('application/openmetrics-text', 'HEAD')[2])
