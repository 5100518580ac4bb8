"""Retry failed write transactions.

This module executes the whole transaction again after a failure that is not the fault of the
client: a deadlock, a lock wait timeout, a failed certification on a Galera cluster, a duplicate
key, a row that a concurrent transaction has changed, a connection that was lost before COMMIT was
sent, or, once, a server that has become read-only.
"""

from collections.abc import Callable
import logging
import random
import time
from typing import TypeVar

from placement import exception, telemetry
from placement.db import failures

LOG = logging.getLogger(__name__)

T = TypeVar('T')

# A transaction that fails later than this many seconds after its first attempt is not retried.
DEADLINE = 30.0
# A transaction is not retried after this number of consecutive attempts that violated the same key.
# A retry helps if a concurrent transaction inserted the row: the next attempt reads that row. Other
# transactions can insert and delete the row repeatedly, so that several attempts violate the key.
SAME_KEY_ATTEMPTS = 10
# The pause after a failed attempt is random. The upper limit of the pause starts at `_FIRST_PAUSE`
# seconds and doubles with each attempt.
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_MOST_DOUBLINGS = 9


def run(transaction: Callable[[], T], min_attempts: int = 1) -> T:
    """Execute a transaction; retry after transient failures until the deadline expires.

    :param transaction: the function that executes and commits the transaction, called once for each
        attempt
    :param min_attempts: after a conflict with a concurrent transaction, make at least this many
        attempts, even past the deadline
    :returns: the result of the successful attempt
    :raises exception.ConcurrentChange: until the deadline, every attempt failed because a
        concurrent transaction had changed a row
    :raises exception.RepeatedKeyViolation: `SAME_KEY_ATTEMPTS` consecutive attempts violated the
        same unique or foreign key constraint
    :raises exception.DatabaseUnavailable: the deadline has expired, and the last attempt failed
        with another transient error
    """
    deadline = time.monotonic() + DEADLINE
    violations = _KeyViolations()
    attempt = 0
    was_read_only = False
    while True:
        attempt += 1
        try:
            return transaction()
        except exception.ConcurrentChange as exc:
            if attempt >= min_attempts and time.monotonic() >= deadline:
                raise
            reason, message = 'concurrent_change', str(exc)
        except exception.PlacementException:
            raise
        except Exception as exc:
            # The next attempt uses a new connection, which may lead to the new primary server.
            is_moved = failures.is_read_only(exc) and not was_read_only
            was_read_only = was_read_only or is_moved
            if not (is_moved or failures.is_transient(exc)):
                failures.raise_translated(exc)
            if violations.count(exc) >= max(SAME_KEY_ATTEMPTS, min_attempts):
                LOG.warning(
                    'Giving up: repeated attempts violated the same key constraint: %s',
                    failures.summary(exc),
                )
                raise exception.RepeatedKeyViolation() from exc
            # `min_attempts` applies only to conflicts: an attempt that ends in a lock timeout or a
            # lost connection can take many seconds.
            required = min_attempts if failures.is_conflict(exc) else 1
            if attempt >= required and time.monotonic() >= deadline:
                LOG.warning('Giving up after %d attempts: %s', attempt, failures.summary(exc))
                raise exception.DatabaseUnavailable() from exc
            reason, message = failures.retry_reason(exc), failures.summary(exc)
        LOG.debug('Retrying the transaction after attempt %d: %s', attempt, message)
        telemetry.RETRIES.add(1, reason)
        time.sleep(_pause(attempt))


class _KeyViolations:
    """Counts the consecutive attempts that violated the same key."""

    def __init__(self) -> None:
        self._summary = ''
        self._count = 0

    def count(self, exc: Exception) -> int:
        """Count a failed attempt; return the new count, or 0 if `exc` is not a key violation."""
        if not failures.is_key_violation(exc):
            self._count = 0
            return 0
        summary = failures.summary(exc)
        self._count = self._count + 1 if summary == self._summary else 1
        self._summary = summary
        return self._count


def _pause(attempt: int) -> float:
    """Return the seconds to wait after an attempt; random, so that conflicting retries diverge."""
    doublings = min(attempt - 1, _MOST_DOUBLINGS)
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**doublings)
    return random.uniform(0, longest)  # noqa: S311 - not a secret
