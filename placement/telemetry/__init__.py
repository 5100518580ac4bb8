"""Service metrics that every layer can update.

The package imports no other module of Placement, so every layer can import it. Until `switch_on` is
called, the functions have no effect, and prometheus_client is not imported. prometheus_client is an
optional requirement.
"""

from collections.abc import Callable, Iterable
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from placement.telemetry import server

if TYPE_CHECKING:
    from placement.telemetry.instruments import Instruments

_PACKAGE = 'prometheus_client'

_instruments: 'Instruments | None' = None


class UnavailableError(Exception):
    """The metrics cannot be recorded. `str()` returns one sentence for the operator."""


def switch_on() -> None:
    """Record metrics from now on. Repeated calls have no effect.

    :raises UnavailableError: prometheus_client is not installed, or the directory in
        `PROMETHEUS_MULTIPROC_DIR` cannot be used
    """
    global _instruments
    if _instruments is not None:
        return
    if importlib.util.find_spec(_PACKAGE) is None:
        raise UnavailableError(
            '[metrics] enabled needs the library prometheus_client: run '
            "pip install 'openstack-placement[metrics]'"
        )
    from placement.telemetry import instruments

    try:
        _instruments = instruments.create()
    except OSError as exc:
        raise UnavailableError(
            f'The directory "{os.environ[server.DIRECTORY]}", which the environment variable '
            f'{server.DIRECTORY} names, cannot be used: {exc.strerror or exc}'
        ) from exc
    if not _instruments.shared and (server.process_count() or 1) > 1:
        server.warn_of_separate_processes()


def serve_metrics(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Serve the metrics of all processes: the WSGI application of `/metrics`."""
    from placement.telemetry import instruments

    assert _instruments is not None
    return instruments.serve(_instruments.registry, environ, start_response)


def request_started(multiprocess: bool) -> None:
    """Count a request in progress.

    :param multiprocess: whether several processes serve requests, as far as the web server knows
    """
    if _instruments is not None:
        _instruments.requests_in_progress.inc()
        if multiprocess and not _instruments.shared and server.process_count() is None:
            server.warn_of_separate_processes()


def request_ended(route: str | None, method: str, status_class: str, seconds: float) -> None:
    """Count a request that is no longer in progress.

    :param route: the path template of the route; None if the path matches no route
    :param method: the HTTP method
    :param status_class: the class of the response status, for example `2xx`
    :param seconds: the time since the start of the request
    """
    if _instruments is not None:
        _instruments.requests_in_progress.dec()
        _instruments.observe_request(route, method, status_class, seconds)


def connection_acquired() -> None:
    """Count a database connection in use."""
    if _instruments is not None:
        _instruments.connections_in_use.inc()


def connection_released() -> None:
    """Count a database connection that is no longer in use."""
    if _instruments is not None:
        _instruments.connections_in_use.dec()


def retried(reason: str) -> None:
    """Count a retry of a transaction.

    :param reason: one of `declarations.RETRY_REASONS`
    """
    if _instruments is not None:
        _instruments.retries[reason].inc()


def refused(reason: str) -> None:
    """Count a request whose claims were refused.

    :param reason: one of `declarations.REFUSAL_REASONS`
    """
    if _instruments is not None:
        _instruments.refusals[reason].inc()


def searched(candidates: int, steps: int, cut: bool) -> None:
    """Count a search for allocation candidates.

    :param candidates: the number of returned candidates
    :param steps: the number of search steps
    :param cut: whether the search ended early, so that candidates may be missing
    """
    if _instruments is not None:
        _instruments.candidates_returned.observe(candidates)
        _instruments.search_steps.observe(steps)
        if cut:
            _instruments.searches_cut.inc()


def policy_usable(usable: bool) -> None:
    """Record whether the process can use the current policy files."""
    if _instruments is not None:
        _instruments.unusable_policy.set(0 if usable else 1)


def token_validated(result: str, seconds: float) -> None:
    """Count a validation of a token by Keystone.

    :param result: one of `declarations.VALIDATION_RESULTS`
    :param seconds: the duration of the validation
    """
    if _instruments is not None:
        _instruments.validations[result].inc()
        _instruments.validation_duration.observe(seconds)


def token_known(level: str) -> None:
    """Count a token that needed no validation by Keystone.

    :param level: where the process found it, one of `declarations.MEMORY_LEVELS`
    """
    if _instruments is not None:
        _instruments.token_hits[level].inc()
