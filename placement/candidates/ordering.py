"""[placement] allocation_candidates_generation_strategy: depth-first or breadth-first.

Pure functions over lazy streams, one stream of candidates for each anchor: a candidate that is not
requested is not searched. A stream that yields None has used up its turn and pauses.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar('T')

DEPTH_FIRST = 'depth-first'
BREADTH_FIRST = 'breadth-first'


def depth_first(streams: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """Exhaust one anchor before the next. Anchors that pause continue after all others."""
    waiting: deque[Iterator[T | None]] = deque()
    for stream in _then_waiting(streams, waiting):
        for item in stream:
            if item is None:
                waiting.append(stream)
                break
            yield item


def breadth_first(streams: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """Take one candidate of each anchor in turn, and repeat this until all are exhausted."""
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
    """Yield all streams, and then the waiting ones as long as there are any."""
    yield from streams
    while waiting:
        yield waiting.popleft()


STRATEGIES: dict[str, Callable[[Iterable[Iterator[T | None]]], Iterator[T]]] = {
    DEPTH_FIRST: depth_first,
    BREADTH_FIRST: breadth_first,
}
