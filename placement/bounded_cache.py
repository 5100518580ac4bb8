"""Caches with a limited number of entries."""

from collections.abc import Callable, Hashable
import functools
import threading
from typing import Any, Generic, TypeVar

Function = TypeVar('Function', bound=Callable[..., Any])
Item = TypeVar('Item', bound=Hashable)

_ENTRIES = 256


def cache_short_texts(longest: int) -> Callable[[Function], Function]:
    """Return a decorator that caches the results of a function whose first argument is a text.

    Clients usually send a few short headers repeatedly. Results for longer texts are not cached,
    so that a client cannot fill the memory of a worker.

    :param longest: the maximum length of the text, in characters, for which results are cached
    """

    def decorator(function: Function) -> Function:
        cached = functools.lru_cache(maxsize=_ENTRIES)(function)

        @functools.wraps(function)
        def choose(text: str, *args: Any) -> Any:
            return cached(text, *args) if len(text) <= longest else function(text, *args)

        choose.cache_info = cached.cache_info  # type: ignore[attr-defined]  # lru_cache adds this attribute too
        return choose  # type: ignore[return-value]  # has the signature of the function

    return decorator


class BoundedSet(Generic[Item]):
    """A set that several threads can use; if it is full, it drops the item that was added first.

    :param capacity: the maximum number of items
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: dict[Item, None] = {}
        self._lock = threading.Lock()

    def __contains__(self, item: Item) -> bool:
        return item in self._items

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Item) -> None:
        """Add an item, unless the set contains it."""
        if item in self._items:
            return
        with self._lock:
            self._items[item] = None
            if len(self._items) > self._capacity:
                del self._items[next(iter(self._items))]

    def discard(self, item: Item) -> None:
        """Remove an item if the set contains it."""
        with self._lock:
            self._items.pop(item, None)
