"""The application behind `/healthcheck`, for load balancers and monitoring.

oslo.middleware provides the application. `[healthcheck] backends` lists what it checks. Placement
provides one of these backends, `placement_database`, which is the default. Its check does not use
the connection pool: if all pooled connections are in use, the database is busy but not down.
"""

from collections.abc import Iterable
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
# The time limit of a check, in seconds: for the connection, and for each response of the server. A
# server that hangs exceeds one of them. Some drivers do not accept less for the connection.
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
        self._lock = threading.Lock()
        self._last: str | None = None
        self._ended = -KEEP_SECONDS

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return the result of the current check, or of the last one if it is recent.

        The details of a success are the problem of the policy files, if there is one.
        """
        del server_port
        problem = self._current()
        if problem is None:
            return pluginbase.HealthcheckResult(
                available=True, reason='OK', details=policy.problem() or ''
            )
        return pluginbase.HealthcheckResult(
            available=False, reason='DATABASE UNAVAILABLE', details=problem
        )

    def _current(self) -> str | None:
        """Return why the current check or the last one failed, or None if it passed."""
        # A request that arrives during a check waits for its result, so checks do not add up. The
        # driver limits a check, but not the resolution of a host name.
        if not self._lock.acquire(timeout=SECONDS):
            return f'no result within {SECONDS} seconds'
        try:
            if time.monotonic() - self._ended >= KEEP_SECONDS:
                self._check()
            return self._last
        finally:
            self._lock.release()

    def _check(self) -> None:
        """Check the database, and log the first failure and the first success after a failure."""
        previous, self._last = self._last, _problem()
        self._ended = time.monotonic()
        if self._last is None and previous is not None:
            LOG.info('The health check of the database passes again.')
        elif self._last is not None and previous is None:
            LOG.warning('The health check of the database fails: %s', self._last)


# The check of the database -----------------------------------------------------------


def _problem() -> str | None:
    """Check the database, and return why the check failed, or None if it passed."""
    try:
        check_database()
    except Exception as exc:
        # Other programs can use up the connections of the server, while the connections in the pool
        # serve all requests.
        return None if failures.connection_limit(exc) else failures.summary(exc)
    return None


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
