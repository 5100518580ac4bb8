"""Retries of writing transactions.

The whole transaction is retried after a failure that the client did not cause: a deadlock, a lock
wait timeout, a failed certification on a Galera cluster, a duplicate key, a row that a concurrent
transaction has changed, or a connection that was lost before COMMIT was sent.
"""

from collections.abc import Callable
import logging
import random
import time
from typing import TypeVar

from placement import exception
from placement.db import failures

LOG = logging.getLogger(__name__)

T = TypeVar('T')

# Seconds from the first attempt after which a failed transaction is not retried.
DEADLINE = 30.0
# The number of consecutive attempts that may fail at the same key. If a concurrent transaction
# creates the row, the next attempt finds it. If another one deletes the row, that attempt may fail
# again.
SAME_KEY_ATTEMPTS = 10
# The pause after an attempt is random. Its upper limit, in seconds, doubles with each attempt.
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_MOST_DOUBLINGS = 9


def run(transaction: Callable[[], T], min_attempts: int = 1) -> T:
    """Execute a transaction until it succeeds, the client has to act, or the deadline expires.

    :param transaction: executes and commits the transaction; called once for each attempt
    :param min_attempts: the minimum number of attempts in case of conflicts
    :returns: the result of the successful attempt
    :raises exception.ConcurrentChange: a concurrent transaction changed a row in each attempt
    :raises exception.RepeatedKeyViolation: one key rejected `SAME_KEY_ATTEMPTS` attempts
    :raises exception.DatabaseUnavailable: the database failed until the deadline
    """
    deadline = time.monotonic() + DEADLINE
    violations = _KeyViolations()
    attempt = 0
    while True:
        attempt += 1
        try:
            return transaction()
        except exception.ConcurrentChange as exc:
            if attempt >= min_attempts and time.monotonic() >= deadline:
                raise
            reason = str(exc)
        except exception.PlacementException:
            raise
        except Exception as exc:
            if not failures.is_transient(exc):
                if (translated := failures.translate(exc)) is None:
                    raise
                raise translated from exc
            if violations.count(exc) >= max(SAME_KEY_ATTEMPTS, min_attempts):
                LOG.warning('The same key rejected each attempt: %s', failures.summary(exc))
                raise exception.RepeatedKeyViolation() from exc
            # An attempt that ends in a lock timeout or a lost connection may take long.
            required = min_attempts if failures.is_conflict(exc) else 1
            if attempt >= required and time.monotonic() >= deadline:
                raise exception.DatabaseUnavailable() from exc
            reason = failures.summary(exc)
        LOG.debug('Retrying the transaction after attempt %d: %s', attempt, reason)
        time.sleep(_pause(attempt))


class _KeyViolations:
    """Counts the consecutive attempts that failed at the same key."""

    def __init__(self) -> None:
        self._summary = ''
        self._count = 0

    def count(self, exc: Exception) -> int:
        """Add a failed attempt and return the count; 0 if `exc` is not a key violation."""
        if not failures.is_key_violation(exc):
            self._count = 0
            return 0
        summary = failures.summary(exc)
        self._count = self._count + 1 if summary == self._summary else 1
        self._summary = summary
        return self._count


def _pause(attempt: int) -> float:
    """Seconds to wait after an attempt: random, so that concurrent transactions do not collide."""
    doublings = min(attempt - 1, _MOST_DOUBLINGS)
    return random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**doublings))
