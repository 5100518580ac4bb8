"""The service metrics, which every layer can update.

Until `switch_on` is called, updates have no effect, and prometheus_client is not imported.
prometheus_client is an optional requirement.
"""

import atexit
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
import functools
import itertools
import logging
import os
from pathlib import Path
import sys
from typing import Any, Literal

from placement import exception

LOG = logging.getLogger(__name__)

# The environment variable with the directory in which several processes keep their metrics.
DIRECTORY = 'PROMETHEUS_MULTIPROC_DIR'

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

METRICS: list['Metric'] = []


@dataclass(eq=False, slots=True)
class Metric:
    """A metric, which every module can update.

    :ivar help: one sentence, which the exposition contains
    :ivar labels: the names of the labels, and their values if all values are known in advance
    :ivar buckets: the upper limits of the buckets of a histogram
    :ivar recorder: the metric of prometheus_client; None if metrics are not recorded
    """

    kind: Literal['counter', 'gauge', 'histogram']
    name: str
    help: str
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    buckets: Sequence[float] = ()
    recorder: Any = None

    def __post_init__(self) -> None:
        METRICS.append(self)

    def record(self, registry: Any) -> None:
        """Record updates from now on. A query for an increase needs the value 0 at the start.

        :param registry: the registry of a single process; None if metrics are in files
        """
        import prometheus_client

        create: Any = {
            'counter': prometheus_client.Counter,
            'gauge': functools.partial(prometheus_client.Gauge, multiprocess_mode='livesum'),
            'histogram': functools.partial(prometheus_client.Histogram, buckets=self.buckets),
        }[self.kind]
        self.recorder = create(self.name, self.help, tuple(self.labels), registry=registry)
        if self.labels:
            for values in itertools.product(*self.labels.values()):
                self.recorder.labels(*values)

    def add(self, amount: int, *labels: str) -> None:
        """Add an amount to a counter or to a gauge."""
        if self.recorder is not None:
            self._of(labels).inc(amount)

    def set(self, value: float) -> None:
        """Set the value of a gauge."""
        if self.recorder is not None:
            self.recorder.set(value)

    def observe(self, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        if self.recorder is not None:
            self._of(labels).observe(value)

    def _of(self, labels: Sequence[str]) -> Any:
        return self.recorder.labels(*labels) if labels else self.recorder


REQUEST_DURATION = Metric(
    'histogram',
    'placement_http_request_duration_seconds',
    'Duration of API requests.',
    {'route': (), 'method': (), 'status': ()},
    _SECONDS,
)
REQUESTS_IN_PROGRESS = Metric(
    'gauge', 'placement_http_requests_in_progress', 'API requests in progress.'
)
CONNECTIONS_IN_USE = Metric(
    'gauge', 'placement_database_connections_in_use', 'Database connections in use by requests.'
)
# `placement.db.retry` and `failures` determine the reason.
RETRIES = Metric(
    'counter',
    'placement_database_retries_total',
    'Retries of database transactions.',
    {
        'reason': (
            'concurrent_change',
            'conflict',
            'connection_lost',
            'key_violation',
            'lock_timeout',
        )
    },
)
# `placement.claims.judge` determines the reason.
REFUSALS = Metric(
    'counter',
    'placement_claims_refused_total',
    'Requests whose claims were refused.',
    {
        'reason': (
            'capacity',
            'concurrent_change',
            'consumer_generation',
            'inventory_in_use',
            'max_unit',
            'min_unit',
            'no_inventory',
            'other',
            'provider_generation',
            'step_size',
            'unknown_provider',
            'unknown_resource_class',
        )
    },
)
CANDIDATES_RETURNED = Metric(
    'histogram',
    'placement_candidates_returned',
    'Allocation candidates returned by a search.',
    buckets=(0, 1, 10, 100, 1_000, 10_000, 100_000),
)
SEARCH_STEPS = Metric(
    'histogram',
    'placement_candidate_search_steps',
    'Search steps of a search for allocation candidates.',
    buckets=(10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
)
SEARCHES_CUT = Metric(
    'counter',
    'placement_candidate_searches_cut_total',
    'Searches for allocation candidates that ended early because of a limit.',
)
UNUSABLE_POLICY = Metric(
    'gauge',
    'placement_policy_file_unusable',
    'Processes that use earlier policy rules, because a policy file is not usable.',
)
VALIDATIONS = Metric(
    'counter',
    'placement_token_validations_total',
    'Validations of tokens by Keystone.',
    {'result': ('accepted', 'rejected', 'unavailable')},
)
VALIDATION_DURATION = Metric(
    'histogram',
    'placement_token_validation_duration_seconds',
    'Duration of validations of tokens by Keystone.',
    buckets=_SECONDS,
)
TOKEN_HITS = Metric(
    'counter',
    'placement_token_hits_total',
    'Tokens that needed no validation, because a memory contained them.',
    {'level': ('memcached', 'memory')},
)

# The WSGI application of prometheus_client.
_application: Any = None


def switch_on() -> None:
    """Record metrics from now on. Repeated calls have no effect.

    :raises exception.MetricsUnavailable: prometheus_client is not installed, or the directory in
        `PROMETHEUS_MULTIPROC_DIR` cannot be used
    """
    global _application
    if _application is not None:
        return
    try:
        import prometheus_client
    except ImportError as exc:
        raise exception.MetricsUnavailable(
            '[metrics] enabled needs the library prometheus_client: run '
            "pip install 'openstack-placement[metrics]'"
        ) from exc
    # Without this, each counter and histogram has a second metric with the time of its creation.
    prometheus_client.disable_created_metrics()
    registry = prometheus_client.CollectorRegistry()
    directory = os.environ.get(DIRECTORY)
    if directory is None:
        _warn_of_separate_processes()
        _record(registry)
    else:
        try:
            _share(registry, directory)
            _record(None)
        except OSError as exc:
            raise exception.MetricsUnavailable(
                f'The directory "{directory}", which the environment variable {DIRECTORY} names, '
                f'cannot be used: {exc.strerror or exc}'
            ) from exc
    _application = prometheus_client.make_wsgi_app(registry)


def _record(registry: Any) -> None:
    for metric in METRICS:
        metric.record(registry)


def _share(registry: Any, directory: str) -> None:
    """Add up the metrics of all processes. They keep them in files, which contain their ID.

    A process that exits removes the file with its gauges. If it was killed, the next process that
    starts does so.

    :raises OSError: the directory cannot be used
    """
    from prometheus_client import multiprocess

    if not directory:
        raise OSError('The variable is empty')
    path = Path(directory)
    path.mkdir(exist_ok=True)

    def remove_own() -> None:
        multiprocess.mark_process_dead(os.getpid(), directory)

    # An earlier process can have had the same ID.
    remove_own()
    for file in path.glob('gauge_live*.db'):
        pid = int(file.stem.rpartition('_')[2])
        try:
            os.kill(pid, 0)
        except OSError:
            multiprocess.mark_process_dead(pid, directory)
    atexit.register(remove_own)
    multiprocess.MultiProcessCollector(registry, directory)


def _warn_of_separate_processes() -> None:
    """Log that the metrics of several processes are not added up, if the web server has several."""
    # Only inside of these web servers, the module has the attribute.
    numbers = (('uwsgi', 'numproc'), ('mod_wsgi', 'maximum_processes'))
    if any(getattr(sys.modules.get(name), number, 1) > 1 for name, number in numbers):
        LOG.warning(
            'Several processes serve requests, and each process returns only its own metrics. To '
            'add up the metrics, set the environment variable %s to a directory that all these '
            'processes share.',
            DIRECTORY,
        )


def serve_metrics(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Serve the metrics of all processes: the WSGI application of `/metrics`."""
    # The application of prometheus_client rejects HEAD.
    request = {**environ, 'REQUEST_METHOD': 'GET'}
    try:
        body: Iterable[bytes] = _application(request, start_response)
    except (TypeError, ValueError):
        # The header Accept contains a malformed version.
        body = _application({**request, 'HTTP_ACCEPT': ''}, start_response)
    return body if environ['REQUEST_METHOD'] == 'GET' else []
