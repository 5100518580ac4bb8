"""The response of `/metrics`. Import this module only if metrics are enabled."""

from collections.abc import Callable, Iterable
from typing import Any

import prometheus_client


def serve(
    registry: prometheus_client.CollectorRegistry,
    environ: dict[str, Any],
    start_response: Callable[..., Any],
) -> Iterable[bytes]:
    """Serve the metrics in the format that the request prefers; the method is GET or HEAD."""

    def start(status: str, headers: list[tuple[str, str]], *args: Any) -> None:
        started.append((status, headers, *args))

    started: list[Any] = []
    application = prometheus_client.make_wsgi_app(registry)
    # The application of prometheus_client rejects HEAD.
    environ_of_get = {**environ, 'REQUEST_METHOD': 'GET'}
    try:
        body = b''.join(application(environ_of_get, start))
    except TypeError:
        # prometheus_client compares the versions in the header Accept, even if one is not a number.
        body = b''.join(application({**environ_of_get, 'HTTP_ACCEPT': ''}, start))
    status, headers = started[-1]
    start_response(status, [*headers, ('Content-Length', str(len(body)))])
    return [body] if environ['REQUEST_METHOD'] == 'GET' else []
