"""Implements [placement] allocation_candidates_generation_strategy: depth-first or breadth-first.

An *anchor* is a provider tree with the sharing providers available to it. The functions merge one
stream of candidates for each anchor into one stream. They are lazy: they request a candidate only
when the caller does. A stream yields None in place of a candidate when its search has used up its
turn.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar('T')

DEPTH_FIRST = 'depth-first'
BREADTH_FIRST = 'breadth-first'


def depth_first(streams: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """Yield all candidates of one anchor before those of the next.

    If a stream yields None, its remaining candidates follow after those of all other anchors.
    """
    waiting: deque[Iterator[T | None]] = deque()
    for stream in _then_waiting(streams, waiting):
        for item in stream:
            if item is None:
                waiting.append(stream)
                break
            yield item


def breadth_first(streams: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """Yield one candidate of each anchor in turn, until all streams are exhausted."""
    waiting: deque[Iterator[T | None]] = deque()
    for stream in _then_waiting(streams, waiting):
        for item in stream:
            if item is not None:
                yield item
            waiting.append(stream)
            break


def _then_waiting(
    streams: Iterable[Iterator[T | None]], waiting: deque[Iterator[T | None]]
) -> Iterator[Iterator[T | None]]:
    """Yield all streams, and then the waiting streams until no stream is waiting.

    :param waiting: updated by the caller during the iteration
    """
    yield from streams
    while waiting:
        yield waiting.popleft()


STRATEGIES: dict[str, Callable[[Iterable[Iterator[T | None]]], Iterator[T]]] = {
    DEPTH_FIRST: depth_first,
    BREADTH_FIRST: breadth_first,
}
