"""A cache of compiled statements with a limit of memory.

The text of many statements depends on the request: each additional required trait changes it.
SQLAlchemy's own cache limits the number of statements, and one statement can retain megabytes. This
cache limits the estimated memory of its statements.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
import gc
import itertools
import sys
import threading
from typing import Any

from sqlalchemy.engine import Compiled

# Bytes. All statements of tools/perf together are estimated at 2 MiB, a query of 10 traits at
# 0.4 MiB.
CAPACITY = 32 * 2**20
# The maximum share of one statement, so that it evicts few other statements.
LARGEST_SHARE = 1 / 8
# The maximum share of all statements after an eviction.
KEPT_SHARE = 1 / 2
# A compiled statement and its key retain 16 to 66 bytes for each character of the SQL text
# (tracemalloc, SQLAlchemy 2.1, Python 3.11; the more bound parameters, the more bytes).
_BYTES_PER_CHARACTER = 64


@dataclass(slots=True)
class _Entry:
    compiled: Compiled
    bytes: int
    last_use: int


class StatementCache(MutableMapping[Any, Compiled]):
    """Compiled statements by SQLAlchemy's cache key, for the execution option `compiled_cache`.

    If the cache is full, it evicts the least recently used statements. It does not store a
    statement that is too large: SQLAlchemy compiles such a statement for each execution.

    :param capacity: the limit of the estimated memory, in bytes
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._entries: dict[Any, _Entry] = {}
        self._uses = itertools.count()
        self._lock = threading.Lock()

    # PERF: a key is a deep tuple, and each look-up hashes all of it, so a hit makes one look-up.
    # It reads and changes one entry only, and therefore takes no lock.
    def get(self, key: Any, default: Any = None) -> Any:
        """The compiled statement of a key, which becomes the most recently used one."""
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
            # Compiled statements have reference cycles, and those of a cache are in the oldest
            # generation. The garbage collector examines that generation so rarely that memory grew
            # by 150 KiB for each request.
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
    """The estimated memory of a compiled statement and its cache key, in bytes.

    The key refers to the parameters of the first execution, which include the lists for an IN.
    """
    parameters = getattr(compiled, 'binds', {}).values()
    lists = [bind.value for bind in parameters if isinstance(bind.value, (list, tuple))]
    listed = sum(sys.getsizeof(value) for values in lists for value in values)
    return _BYTES_PER_CHARACTER * len(compiled.string or '') + listed
