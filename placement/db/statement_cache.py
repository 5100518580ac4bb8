"""A memory-limited cache of compiled SQL statements.

The SQL text of many statements depends on the request; for example, each additional required trait
changes the text. SQLAlchemy's own cache limits the number of statements, but a single statement can
occupy megabytes. This cache limits the estimated memory of all its statements.
"""

import gc
import sys
import threading
from typing import Any

from sqlalchemy.engine import Compiled

# In bytes. The estimated size of all statements that tools/perf executes is 2 MiB. The estimated
# size of a query with 10 traits is 0.4 MiB.
CAPACITY = 32 * 2**20
# A statement that needs more than this share of the capacity is not cached, because it would
# replace too many other statements. It is compiled again for each execution.
LARGEST_SHARE = 1 / 8
# A compiled statement and its cache key occupy 16 to 66 bytes for each character of the SQL text.
# The value increases with the number of bound parameters (measured with tracemalloc, SQLAlchemy
# 2.1, Python 3.11).
_BYTES_PER_CHARACTER = 64


class StatementCache(dict[Any, Compiled]):
    """A dictionary of compiled statements by cache key, for the option `compiled_cache`.

    A full cache is emptied: the statements of frequent requests are soon compiled again. An order
    of their uses would cost time in each execution, because a cache key is a deeply nested tuple,
    and each look-up hashes the whole tuple.

    :param capacity: the limit of the estimated memory, in bytes
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        super().__init__()
        self.capacity = capacity
        self.bytes = 0
        self._lock = threading.Lock()

    def __setitem__(self, key: Any, compiled: Compiled) -> None:
        size = estimated_bytes(compiled)
        if size > self.capacity * LARGEST_SHARE:
            return
        with self._lock:
            if key in self:
                return  # another thread compiled the same statement
            full = self.bytes + size > self.capacity
            if full:
                self.clear()
            super().__setitem__(key, compiled)
            self.bytes += size
        if full:
            # Compiled statements contain reference cycles, so only the garbage collector can free
            # them. They are in its oldest generation, which it examines so rarely that memory grew
            # by 150 KiB with each request.
            gc.collect()

    def clear(self) -> None:
        """Remove all statements."""
        super().clear()
        self.bytes = 0


def estimated_bytes(compiled: Compiled) -> int:
    """Return the estimated memory of a compiled statement and its cache key, in bytes.

    The cache key refers to the parameters of the first execution, including the values of IN lists.
    """
    parameters = getattr(compiled, 'binds', {}).values()
    lists = [bind.value for bind in parameters if isinstance(bind.value, (list, tuple))]
    listed = sum(sys.getsizeof(value) for values in lists for value in values)
    return _BYTES_PER_CHARACTER * len(compiled.string or '') + listed
