"""The memory of validated tokens.

Only keystonemiddleware decides whether a token is valid. The memory keeps the identity headers that
it added to the first request with a token, for later requests with the same token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import hashlib
import secrets
import threading
import time
from typing import Any

import cachetools

_DIGEST_SIZE = 16
_ABSENT = object()


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
