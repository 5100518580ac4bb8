"""A set with a limited number of items."""

from collections.abc import Hashable
import threading
from typing import Generic, TypeVar

Item = TypeVar('Item', bound=Hashable)


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
