"""A memory-limited cache of compiled SQL statements.

The SQL text of many statements depends on the request; for example, each additional required trait
changes the text. SQLAlchemy's own cache limits the number of statements, but a single statement can
occupy megabytes. This cache limits the estimated memory of all its statements.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
import gc
import itertools
import sys
import threading
from typing import Any

from sqlalchemy.engine import Compiled

# In bytes. The estimated size of all statements that tools/perf executes is 2 MiB. The estimated
# size of a query with 10 traits is 0.4 MiB.
CAPACITY = 32 * 2**20
# A statement that needs more than this share of the capacity is not cached, because it would evict
# too many other statements.
LARGEST_SHARE = 1 / 8
# An eviction continues until the cache uses at most this share of its capacity.
KEPT_SHARE = 1 / 2
# A compiled statement and its cache key occupy 16 to 66 bytes for each character of the SQL text.
# The value increases with the number of bound parameters (measured with tracemalloc, SQLAlchemy
# 2.1, Python 3.11).
_BYTES_PER_CHARACTER = 64


@dataclass(slots=True)
class _Entry:
    compiled: Compiled
    bytes: int
    last_use: int


class StatementCache(MutableMapping[Any, Compiled]):
    """A mapping of SQLAlchemy cache keys to compiled statements, for the option `compiled_cache`.

    A full cache evicts the least recently used statements. Statements that are too large for the
    cache are compiled again for each execution.

    :param capacity: the limit of the estimated memory, in bytes
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._entries: dict[Any, _Entry] = {}
        self._uses = itertools.count()
        self._lock = threading.Lock()

    # PERF: a cache key is a deeply nested tuple, and each dictionary look-up hashes the whole
    # tuple. Therefore a cache hit performs a single look-up. This method needs no lock, because it
    # reads and changes only one entry.
    def get(self, key: Any, default: Any = None) -> Any:
        """Return the compiled statement of a key and mark that statement as most recently used."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        entry.last_use = next(self._uses)
        return entry.compiled

    def __getitem__(self, key: Any) -> Compiled:
        compiled: Compiled | None = self.get(key)
        if compiled is None:
            raise KeyError(key)
        return compiled

    def __setitem__(self, key: Any, compiled: Compiled) -> None:
        size = estimated_bytes(compiled)
        if size > self.capacity * LARGEST_SHARE:
            return
        with self._lock:
            self._remove(key)
            self._entries[key] = _Entry(compiled, size, next(self._uses))
            self.bytes += size
            full = self.bytes > self.capacity
            if full:
                self._evict()
        if full:
            # Compiled statements contain reference cycles, so only the garbage collector can free
            # evicted statements. Evicted statements are in the oldest generation of the garbage
            # collector. The garbage collector examines that generation so rarely that memory grew
            # by 150 KiB with each request.
            gc.collect()

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            if not self._remove(key):
                raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def _remove(self, key: Any) -> bool:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.bytes
        return entry is not None

    def _evict(self) -> None:
        by_use = sorted(self._entries.items(), key=lambda item: item[1].last_use)
        for key, _ in by_use:
            if self.bytes <= self.capacity * KEPT_SHARE:
                break
            self._remove(key)


def estimated_bytes(compiled: Compiled) -> int:
    """Return the estimated memory of a compiled statement and its cache key, in bytes.

    The cache key refers to the parameters of the first execution, including the values of IN lists.
    """
    parameters = getattr(compiled, 'binds', {}).values()
    lists = [bind.value for bind in parameters if isinstance(bind.value, (list, tuple))]
    listed = sum(sys.getsizeof(value) for values in lists for value in values)
    return _BYTES_PER_CHARACTER * len(compiled.string or '') + listed
