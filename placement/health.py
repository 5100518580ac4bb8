"""The application behind `/healthcheck`, for load balancers and monitoring.

oslo.middleware provides the application. `[healthcheck] backends` lists what it checks. Placement
provides one of these backends, `placement_database`, which is the default. Its check does not use
the connection pool: if all pooled connections are in use, the database is busy but not down.
"""

from collections.abc import Callable, Iterable
import functools
from http import HTTPStatus
from importlib import metadata
import ipaddress
import logging
import threading
import time
from typing import Any
from urllib.parse import quote

from oslo_config import cfg
from oslo_middleware import healthcheck
from oslo_middleware.healthcheck import pluginbase
import sqlalchemy as sa
from sqlalchemy import pool

from placement import exception, policy
from placement.db import connections, failures
from placement.db import engine as db_engine
from placement.db.sqlalchemy import migration
from placement.http import Application, Environ, StartResponse, errors

LOG = logging.getLogger(__name__)

# For this number of seconds, further requests receive the result of the last check.
KEEP_SECONDS = 1.0
# The time limit of a check, in seconds.
SECONDS = 2
_QUERY = sa.select(sa.literal(1))
# SQLite does not read the database file to execute a statement without a table.
_SQLITE_QUERY = sa.select(sa.func.count()).select_from(sa.table('sqlite_master'))


def application(api: Application, conf: cfg.ConfigOpts) -> Application:
    """Return the application that responds to health checks.

    :param api: the application for the requests that `[healthcheck] allowed_source_ranges` or
        `ignore_proxied_requests` excludes
    """
    installed = metadata.entry_points(group=healthcheck.Healthcheck.NAMESPACE).names
    missing = sorted(set(conf.healthcheck.backends) - installed)
    if missing:
        # oslo.middleware would ignore these backends, and report that all is well.
        LOG.error(
            'Every health check will fail, because these backends of [healthcheck] backends are '
            'not installed: %s',
            ', '.join(missing),
        )
        return _unhealthy
    checks: Application = healthcheck.Healthcheck(api, conf)
    return _from_addresses(checks, api) if conf.healthcheck.allowed_source_ranges else checks


def _from_addresses(checks: Application, api: Application) -> Application:
    """Return an application that excludes requests without the address of a client.

    oslo.middleware would raise an exception if the header of a proxy contains several addresses, a
    port, or other text.
    """

    def serve(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        try:
            ipaddress.ip_address(environ.get('REMOTE_ADDR', ''))
        except ValueError:
            return api(environ, start_response)
        return checks(environ, start_response)

    return serve


def _unhealthy(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    response: Iterable[bytes] = errors.error_response(
        environ, HTTPStatus.SERVICE_UNAVAILABLE, 'A configured health check is not installed.'
    )(environ, start_response)
    return response


class DatabaseHealthcheck(pluginbase.HealthcheckBaseExtension):
    """The backend `placement_database`: passes if the database executes a statement in time."""

    def __init__(self, oslo_conf: cfg.ConfigOpts, conf: dict[str, Any]) -> None:
        super().__init__(oslo_conf, conf)
        self._check = SharedCheck(check_database, SECONDS, KEEP_SECONDS)
        self._lock = threading.Lock()
        self._available = True

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return the result of the current check, or of the last one if it is recent.

        The details of a success are the problem of the policy files, if there is one.
        """
        del server_port
        error = self._check.error()
        if error is not None and failures.connection_limit(error):
            # Other programs can use up the connections of the server, while the connections in the
            # pool serve all requests.
            error = None
        summary = None if error is None else failures.summary(error)
        self._log_change(summary)
        if summary is None:
            return pluginbase.HealthcheckResult(
                available=True, reason='OK', details=policy.problem() or ''
            )
        return pluginbase.HealthcheckResult(
            available=False, reason='DATABASE UNAVAILABLE', details=summary
        )

    def _log_change(self, summary: str | None) -> None:
        """Log the first failure, and the first success after a failure."""
        available = summary is None
        with self._lock:
            changed = available != self._available
            self._available = available
        if changed and available:
            LOG.info('The health check of the database passes again.')
        elif changed:
            LOG.warning('The health check of the database fails: %s', summary)


class _Run:
    """One execution of a check in a thread of its own."""

    __slots__ = ('_check', '_done', 'ended', 'error', 'started')

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._done = threading.Event()
        self.started = time.monotonic()
        self.ended: float | None = None
        self.error: Exception | None = None
        # A daemon thread does not delay the end of the process.
        threading.Thread(target=self._execute, name='healthcheck', daemon=True).start()

    def _execute(self) -> None:
        try:
            self._check()
        except Exception as exc:
            self.error = exc
        self.ended = time.monotonic()
        self._done.set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the check, and return whether it has ended."""
        return self._done.wait(max(0.0, seconds))


class SharedCheck:
    """Executes a check at most once at a time, and shares its result between threads.

    The check runs in a thread of its own, because the time limits of database drivers apply to
    parts of the check only. For example, there is no limit for the resolution of a host name.

    :param check: raises an exception if it fails
    :param seconds: the time after which a check without a result counts as failed
    :param keep: the time for which a result is used after the end of the check, in seconds
    """

    def __init__(self, check: Callable[[], None], seconds: float, keep: float) -> None:
        self._check = check
        self._seconds = seconds
        self._keep = keep
        self._lock = threading.Lock()
        self._run: _Run | None = None

    def error(self) -> Exception | None:
        """Return the exception of the check, or None if the check passed."""
        run = self._current()
        # If an earlier request has started the check, only the rest of its time remains.
        if run.wait(run.started + self._seconds - time.monotonic()):
            return run.error
        return TimeoutError(f'no result within {self._seconds} seconds')

    def _current(self) -> _Run:
        """Return the check that is running or recent, or else start one."""
        with self._lock:
            run = self._run
            outdated = run is None or (
                run.ended is not None and time.monotonic() - run.ended >= self._keep
            )
            if run is None or outdated:
                run = self._run = _Run(self._check)
            return run


# The check of the database -----------------------------------------------------------


def check_database() -> None:
    """Connect to the database and execute a statement.

    A read-only database, for example a PostgreSQL server in recovery, passes the check, because it
    serves the requests that only read.

    :raises Exception: the database is not available; the class depends on the driver
    """
    engine = db_engine.get_placement_engine()
    if isinstance(engine.pool, pool.StaticPool):
        # An in-memory database has a single connection.
        with db_engine.snapshot() as conn:
            conn.execute(_QUERY)
        return
    with _unpooled(engine.url).connect() as conn:
        if conn.dialect.name == 'sqlite':
            conn.execute(_SQLITE_QUERY)
            return
        conn.execute(_QUERY)
        _require_ready_node(conn)


def _require_ready_node(conn: sa.Connection) -> None:
    """Check that a node of a Galera cluster accepts statements.

    A node outside of the primary component executes a SELECT without a table. With
    `wsrep_dirty_reads`, it executes every SELECT, but no statement that writes.

    :raises exception.DatabaseUnavailable: the node is not ready
    """
    if not migration.is_cluster(conn):
        return
    row = conn.exec_driver_sql("SHOW STATUS LIKE 'wsrep_ready'").first()
    if row is None or str(row[1]).upper() != 'ON':
        raise exception.DatabaseUnavailable()


@functools.lru_cache(maxsize=1)
def _unpooled(url: sa.URL) -> sa.Engine:
    """Return an engine that opens a connection for each check and closes it afterwards."""
    if url.get_dialect().name == 'sqlite':
        return sa.create_engine(
            _existing_file(url), poolclass=pool.NullPool, connect_args={'timeout': SECONDS}
        )
    engine = sa.create_engine(url, poolclass=pool.NullPool, pool_reset_on_return=None)
    connections.limit_waits(engine, connections.Timeouts(SECONDS, SECONDS, SECONDS))
    return engine


def _existing_file(url: sa.URL) -> sa.URL:
    """Return the URL of a SQLite database with which SQLite does not create a missing file."""
    path = url.database or ''
    if path.startswith('file:'):
        return url
    return url.set(database=f'file:{quote(path)}').update_query_dict({'mode': 'rw', 'uri': 'true'})
