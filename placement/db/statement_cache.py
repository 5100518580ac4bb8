"""A cache of compiled statements whose memory is bounded.

Clients decide the shape of many statements: each additional required trait of a query is another
SQL text. SQLAlchemy's own cache is bounded by the number of statements only, and one statement
can retain megabytes. This cache is bounded by the estimated memory of the statements in it.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
import gc
import itertools
import sys
import threading
from typing import Any

from sqlalchemy.engine import Compiled

# All statements of tools/perf together have an estimate of 2 MiB; a query of 10 traits has 0.4 MiB.
CAPACITY = 32 * 2**20
# One statement uses at most this share of the capacity, so that it replaces few others.
LARGEST_SHARE = 1 / 8
# After an eviction, the statements use this share of the capacity at most.
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

    If the cache is full, it evicts the statements whose last use is the oldest. It does not keep
    a statement that is too large: SQLAlchemy compiles such a statement for each execution.

    :param capacity: estimated memory that the statements may use, in bytes
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._entries: dict[Any, _Entry] = {}
        self._uses = itertools.count()
        self._lock = threading.Lock()

    # PERF: a key is a deep tuple, and each look-up hashes all of it, so a hit makes one look-up.
    # It needs no lock: it depends on one entry only.
    def get(self, key: Any, default: Any = None) -> Any:
        entry = self._entries.get(key)
        if entry is None:
            return default
        entry.last_use = next(self._uses)
        return entry.compiled

    def __getitem__(self, key: Any) -> Compiled:
        if (compiled := self.get(key)) is None:
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
            # Compiled statements refer to themselves in cycles, and those of a cache are old. The
            # collector examines old objects so rarely that memory grew by 150 KiB a request.
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
    """The memory that a compiled statement and its cache key retain, in bytes.

    The key refers to the parameters of the first execution, and so to whole lists for an IN.
    """
    parameters = getattr(compiled, 'binds', {}).values()
    lists = [bind.value for bind in parameters if isinstance(bind.value, (list, tuple))]
    listed = sum(sys.getsizeof(value) for values in lists for value in values)
    return _BYTES_PER_CHARACTER * len(compiled.string or '') + listed
