"""Which of all candidates are returned, and in which order.

Pure functions over lazy streams, one stream of candidates for each anchor: what is not requested
is not searched. A stream that yields None has used up its turn and pauses.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
import itertools
import random
from typing import TypeVar

from placement.candidates import model

T = TypeVar('T')

DEPTH_FIRST = 'depth-first'
BREADTH_FIRST = 'breadth-first'


def depth_first(streams: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """Exhaust one anchor before the next. One that pauses comes back after all others."""
    waiting: deque[Iterator[T | None]] = deque()
    for stream in _in_line(streams, waiting):
        for item in stream:
            if item is None:
                waiting.append(stream)
                break
            yield item


def breadth_first(streams: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """Take one candidate of each anchor in turn, and again, until all are exhausted."""
    waiting: deque[Iterator[T | None]] = deque()
    for stream in _in_line(streams, waiting):
        for item in stream:
            if item is not None:
                yield item
            waiting.append(stream)
            break


def _in_line(
    streams: Iterable[Iterator[T | None]], waiting: deque[Iterator[T | None]]
) -> Iterator[Iterator[T | None]]:
    """All streams, and then those that wait for another turn, as long as there are any."""
    yield from streams
    while waiting:
        yield waiting.popleft()


STRATEGIES: dict[str, Callable[[Iterable[Iterator[T | None]]], Iterator[T]]] = {
    DEPTH_FIRST: depth_first,
    BREADTH_FIRST: breadth_first,
}


def unseen(
    stream: Iterable[model.Chosen | None], sharing: set[int], seen: set[model.Chosen]
) -> Iterator[model.Chosen | None]:
    """Drop candidates that other anchors gave already; pauses stay.

    Only what sharing providers make up alone can be found around several anchors.

    :param sharing: ids of the sharing providers, those in reach of the anchor at least
    :param seen: what was found so far; it is added to
    """
    for chosen in stream:
        if chosen is not None and sharing.issuperset(chosen):
            if chosen in seen:
                continue
            seen.add(chosen)
        yield chosen


def take(
    candidates: Iterable[T],
    cap: int | None,
    keep: Callable[[T], bool] | None,
    limit: int | None,
    rng: random.Random | None,
) -> list[T]:
    """Collect what is to be returned.

    :param cap: how many are looked at at all
    :param keep: tells which of those an old client understands
    :param limit: how many are returned
    :param rng: shuffles what is returned
    """
    taken = itertools.islice(candidates, cap)
    kept = itertools.islice(filter(keep, taken) if keep else taken, limit)
    result = list(kept)
    if rng:
        rng.shuffle(result)
    return result
