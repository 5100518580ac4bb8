"""The metric objects of prometheus_client, and the response of `/metrics`.

Import this module only if metrics are enabled.
"""

from collections.abc import Callable, Iterable
import os
from pathlib import Path
from typing import Any

import prometheus_client
from prometheus_client import values

from placement.telemetry import declarations, server
from placement.telemetry.declarations import METRICS, Declaration
from placement.telemetry.processes import AllProcesses, MetricFiles


class Instruments:
    """The metrics of this process, with the label values that are known in advance.

    :ivar registry: collects the metrics of all processes
    :ivar shared: whether the metrics of several processes are added up
    """

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        metrics: dict[str, Any],
        shared: bool,
    ) -> None:
        self.registry = registry
        self.shared = shared
        self.requests_in_progress = metrics[declarations.REQUESTS_IN_PROGRESS]
        self.connections_in_use = metrics[declarations.CONNECTIONS_IN_USE]
        self.candidates_returned = metrics[declarations.CANDIDATES_RETURNED]
        self.search_steps = metrics[declarations.SEARCH_STEPS]
        self.searches_cut = metrics[declarations.SEARCHES_CUT]
        self.unusable_policy = metrics[declarations.UNUSABLE_POLICY]
        retries, refusals = metrics[declarations.RETRIES], metrics[declarations.REFUSALS]
        self.retries = {reason: retries.labels(reason) for reason in declarations.RETRY_REASONS}
        self.refusals = {reason: refusals.labels(reason) for reason in declarations.REFUSAL_REASONS}
        validations, hits = metrics[declarations.VALIDATIONS], metrics[declarations.MEMORY_HITS]
        self.validation_duration = metrics[declarations.VALIDATION_DURATION]
        self.validations = {one: validations.labels(one) for one in declarations.VALIDATION_RESULTS}
        self.token_hits = {level: hits.labels(level) for level in declarations.MEMORY_LEVELS}
        self._request_duration = metrics[declarations.REQUEST_DURATION]

    def observe_request(
        self, route: str | None, method: str, status_class: str, seconds: float
    ) -> None:
        """Record the duration of a request."""
        if method not in declarations.METHODS:
            method = declarations.OTHER_METHOD
        label = declarations.UNMATCHED_ROUTE if route is None else route
        self._request_duration.labels(label, method, status_class).observe(seconds)


def create() -> Instruments:
    """Create the metrics, in files if `PROMETHEUS_MULTIPROC_DIR` is set.

    :raises OSError: the directory cannot be used
    """
    directory = os.environ.get(server.DIRECTORY)
    # Without this, each counter and histogram has a second metric with the time of its creation.
    prometheus_client.disable_created_metrics()
    registry = prometheus_client.CollectorRegistry()
    if directory is None:
        return Instruments(registry, _metrics(registry), shared=False)
    if not directory:
        raise OSError('The variable is empty')
    files = MetricFiles(Path(directory))
    files.prepare()
    # The class determines where the metrics that are created from now on keep their values. By
    # default, prometheus_client names the files after process ids, which the system reuses.
    values.ValueClass = values.MultiProcessValue(files.number)
    registry.register(AllProcesses(files))
    return Instruments(registry, _metrics(None), shared=True)


def _metrics(registry: prometheus_client.CollectorRegistry | None) -> dict[str, Any]:
    return {name: _metric(name, one, registry) for name, one in METRICS.items()}


def _metric(
    name: str, declared: Declaration, registry: prometheus_client.CollectorRegistry | None
) -> Any:
    if declared.kind == 'counter':
        return prometheus_client.Counter(name, declared.help, declared.labels, registry=registry)
    if declared.kind == 'gauge':
        return prometheus_client.Gauge(
            name, declared.help, declared.labels, registry=registry, multiprocess_mode='livesum'
        )
    return prometheus_client.Histogram(
        name, declared.help, declared.labels, registry=registry, buckets=declared.buckets
    )


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
