"""The memory of validated tokens, and validations that several requests share.

Only keystonemiddleware decides whether a token is valid. The memory keeps the identity headers that
it added to the first request with a token, for later requests with the same token.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
import hashlib
import math
import secrets
import threading
import time
from typing import Any

import cachetools

# In seconds: if Keystone takes longer, the last free thread does not wait for it.
LONGEST_WAIT = 1.0

_DIGEST_SIZE = 16
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The data of a token that Keystone accepted.

    :ivar data: the token in the form of the Identity API
    :ivar at: when Keystone was requested to validate the token, in seconds since the epoch
    """

    data: dict[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class _Entry:
    end: float
    values: tuple[Any, ...]


class TokenMemory:
    """The identity headers of accepted requests, by token. Several threads can use it.

    :param names: the names of the identity headers in a WSGI environment
    :param tokens: the maximum number of tokens; the least recently used one is dropped
    :param seconds: how long a token is remembered at most
    """

    def __init__(self, names: Sequence[str], tokens: int, seconds: int) -> None:
        self._names = names
        self._seconds = seconds
        self._secret = secrets.token_bytes(_DIGEST_SIZE)
        self._lock = threading.Lock()
        self._entries: cachetools.TLRUCache[bytes, _Entry] = cachetools.TLRUCache(
            tokens, self._deadline, time.monotonic
        )

    def key(self, token: str, service_token: str) -> bytes:
        """Return the key of a pair of tokens. The tokens cannot be derived from it."""
        # The length separates the tokens.
        text = f'{len(token)}:{token}{service_token}'.encode()
        return hashlib.blake2b(text, digest_size=_DIGEST_SIZE, key=self._secret).digest()

    def get(self, key: bytes) -> dict[str, Any] | None:
        """Return the identity headers, None if the tokens are not in the memory."""
        with self._lock:
            entry = self._entries.get(key)
        # The monotonic clock stands still while a machine is suspended.
        if entry is None or entry.end <= time.time():
            return None
        pairs = zip(self._names, entry.values, strict=True)
        return {name: value for name, value in pairs if value is not _ABSENT}

    def add(self, key: bytes, environ: Mapping[str, Any], end: float) -> None:
        """Remember the identity headers in the environment of an accepted request.

        :param end: when the verdict ends, in seconds since the epoch
        """
        # PERF: a tuple without the names needs less than half of the memory of a dictionary.
        entry = _Entry(end, tuple([environ.get(name, _ABSENT) for name in self._names]))
        with self._lock:
            self._entries[key] = entry

    def _deadline(self, _key: bytes, entry: _Entry, now: float) -> float:
        """Return the end of an entry by the monotonic clock, which nobody can set back."""
        return now + min(entry.end - time.time(), self._seconds)


class Validations:
    """Validations in progress. Requests with the same token wait for one validation.

    :param seconds: how long a success is shared at most
    :param threads: the number of threads that process requests; None if it is unknown
    """

    def __init__(self, seconds: float, threads: int | None = None) -> None:
        self._seconds = seconds
        self._most_waits = math.inf if threads is None else max(1, threads - 1)
        self._lock = threading.Lock()
        # The start of the wait of each thread, in seconds of the monotonic clock.
        self._waits: dict[object, float] = {}
        self._last_wait = 0.0
        self._running: dict[Hashable, Future[Verdict]] = {}

    def share(
        self, key: Hashable, recall: Callable[[], None], validate: Callable[[], Verdict]
    ) -> Verdict:
        """Return the result of the validation of a token; start it if it is not in progress.

        A failure is raised for all requests that wait, and ends the validation. A success does not
        end it: the request that started it calls `end` after it has remembered the result. Each
        later request then finds either the validation or the remembered result. Meanwhile, the
        first request can wait for Keystone to validate its other token. Therefore, the age of a
        success is limited, too.

        :param recall: called before a new validation; raises an exception if the result has been
            remembered meanwhile
        :param validate: validates the token
        :raises TimeoutError: Keystone is slow, and only this thread can process other requests
        """
        wait = object()
        with self._lock:
            if self._is_busy():
                recall()
                raise TimeoutError('All other threads wait for its response.')
            future = self._running.get(key)
            if is_first := future is None or self._is_outdated(future):
                recall()
                future = self._running[key] = Future()
            self._waits[wait] = time.monotonic()
        try:
            if is_first:
                self._run(key, validate, future)
            return future.result()
        finally:
            with self._lock:
                self._last_wait = time.monotonic() - self._waits.pop(wait)
            # The traceback of a failure refers to this frame, and the future to the failure.
            del future

    def _is_busy(self) -> bool:
        """Return whether all other threads wait, and one of their waits or the last one is long."""
        waits = [self._last_wait, *(time.monotonic() - start for start in self._waits.values())]
        return len(self._waits) >= self._most_waits and max(waits) > LONGEST_WAIT

    def _is_outdated(self, future: Future[Verdict]) -> bool:
        return future.done() and future.result().at + self._seconds <= time.time()

    def _run(self, key: Hashable, validate: Callable[[], Verdict], future: Future[Verdict]) -> None:
        try:
            future.set_result(validate())
        except BaseException as exc:
            self.end([key])
            future.set_exception(exc)
        finally:
            del future

    def end(self, keys: Iterable[Hashable]) -> None:
        """End validations: the next request with such a token starts a new one."""
        with self._lock:
            for key in keys:
                self._running.pop(key, None)
