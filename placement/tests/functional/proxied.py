"""A test case whose service uses its database server through a proxy."""

from collections.abc import Sequence
from concurrent import futures
from dataclasses import dataclass
import time
from unittest import mock

import sqlalchemy as sa

from placement.tests import proxy, servers, where
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import Call, Response
from placement.tests.waiting import wait_until


@dataclass(frozen=True, slots=True)
class _ProxiedLease(servers.Lease):
    """A lease whose URL leads through a proxy.

    :ivar direct: the lease with the URL of the server
    """

    direct: servers.Lease

    def release(self) -> None:
        self.direct.release()


@where.not_on('sqlite', reason='The test needs a database server.')
class ProxiedTestCase(testcase.RaceTestCase):
    """Creates an empty service for each test; `proxy` observes and closes its connections.

    The tests are skipped if the run has no database server.

    :ivar direct: the URL of the database without the proxy
    """

    def setUp(self) -> None:
        lease = servers.lease() if self.connection is None else servers.Lease(self.connection)
        self.direct = lease.url
        url = sa.make_url(lease.url)
        assert url.host is not None and url.port is not None
        self.proxy = proxy.Proxy((url.host, url.port))
        self.addCleanup(self.proxy.close)
        if self.connection is None:
            proxied = _ProxiedLease(self._proxied(url), lease)
            patch = mock.patch.object(servers, 'lease', return_value=proxied)
            patch.start()
            self.addCleanup(patch.stop)
        else:
            self.connection = self._proxied(url)
        super().setUp()

    def _proxied(self, url: sa.URL) -> str:
        if url.get_driver_name() == 'pymysql':
            # Otherwise, PyMySQL reads the certificates of the system for every connection, which
            # takes more than 20 ms.
            url = url.update_query_dict({'ssl_disabled': 'true'})
        return url.set(port=self.proxy.port).render_as_string(hide_password=False)

    def send_together(
        self, calls: Sequence[Call], connections: int, limit: int | None = None
    ) -> list[Response]:
        """Make each call in a thread of its own, and return the responses.

        :param connections: the number of connections that must be in use at the same time
        :param limit: the maximum number of connections
        """
        with futures.ThreadPoolExecutor(len(calls)) as pool:
            with self.proxy.holding():
                started = [pool.submit(call) for call in calls]
                # A response can only be an error, which the caller reports.
                wait_until(
                    lambda: self.proxy.held >= connections or any(call.done() for call in started)
                )
                if limit is not None:
                    # Give the service time to open too many connections.
                    time.sleep(0.3)
                    self.assertLessEqual(self.proxy.connections, limit)
            return [future.result() for future in started]
