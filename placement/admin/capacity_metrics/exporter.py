"""Share the metrics between requests, and report failures of the database."""

from collections.abc import Callable, Collection
import contextlib
import logging
import threading
import time
from typing import Generic, TypeVar

from placement import messages
from placement.admin.capacity_metrics.exposition import Page
from placement.admin.capacity_metrics.model import Cloud
from placement.admin.capacity_metrics.shared_call import SharedCall

T = TypeVar('T')

LOG = logging.getLogger(__name__)


class Exporter:
    """Provides the metrics. A read of the database serves all requests that wait for it.

    :param read: reads the state of the cloud
    :param keep: the maximum age of the metrics in seconds; 0 means that each request that finds no
        running read starts one
    :param without: the names of metrics to leave out
    """

    def __init__(
        self,
        read: Callable[[], Cloud],
        keep: float,
        without: Collection[str] = (),
    ) -> None:
        self._read = read
        self._without = without
        self._pages = SharedCall(self._read_page, keep)
        self._page_without_database = Page(None)
        self._lock = threading.Lock()
        self._available = True
        self._unlisted = 0

    def page(self, seconds: float) -> Page:
        """Return the metrics; if the database cannot be read, the page has only `placement_up 0`.

        :param seconds: the maximum time to wait for the database
        """
        try:
            page = self._pages.result(seconds)
        except TimeoutError:
            self._log_change(f'There is no result after {seconds:g} seconds.')
        except Exception as exc:
            LOG.debug('The read of the database failed', exc_info=True)
            self._log_change(messages.sentence(exc))
        else:
            self._log_change(None)
            return page
        return self._page_without_database

    def _read_page(self) -> Page:
        cloud = self._read()
        if cloud.unlisted and cloud.unlisted != self._unlisted:
            LOG.warning(
                'The metrics lack the resource providers without a root (%s). Run '
                '`placement-manage audit --only root-missing`.',
                cloud.unlisted,
            )
        self._unlisted = cloud.unlisted
        return Page(cloud, without=self._without)

    def _log_change(self, failure: str | None) -> None:
        """Log the first failure, and the first success after a failure."""
        available = failure is None
        with self._lock:
            changed = available != self._available
            self._available = available
        if changed and available:
            LOG.info('The database can be read again.')
        elif changed:
            LOG.warning('The database cannot be read: %s', failure)


class Latest(Generic[T]):
    """The result of the last computation, which runs in the background.

    :param what: what is computed, for a message
    :param compute: returns the result
    :param interval: the minimum number of seconds between the starts of two computations
    :param nothing: the result before the end of the first computation, and after a failure
    :param clock: returns the current time in seconds
    """

    def __init__(
        self,
        what: str,
        compute: Callable[[], T],
        interval: float,
        nothing: T,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._compute = compute
        self._call = SharedCall(self._keep_result, interval, clock)
        self._nothing = self._latest = nothing

    def value(self) -> T:
        """Return the last result, and start a computation if it is too old."""
        with contextlib.suppress(TimeoutError):
            self._call.result(0)
        return self._latest

    def _keep_result(self) -> None:
        try:
            self._latest = self._compute()
        except Exception as exc:
            self._latest = self._nothing
            LOG.debug('The computation of the %s failed', self._what, exc_info=True)
            LOG.warning('The %s cannot be computed: %s', self._what, messages.sentence(exc))
