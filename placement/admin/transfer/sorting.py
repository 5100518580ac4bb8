"""Sort any number of rows in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import heapq
import itertools
import pickle
import tempfile
from typing import Any, BinaryIO, cast

Key = Callable[[Any], Any]
_ROWS_IN_MEMORY = 20_000


def everything(rows: Iterable[Any], key: Key, size: int = _ROWS_IN_MEMORY) -> Iterator[Any]:
    """Yield all rows in the order of their keys.

    If there are more than `size` rows, sorted parts of that size are stored in temporary files,
    which have no name.
    """
    remaining = iter(rows)
    with contextlib.ExitStack() as stack:
        parts: list[Iterator[Any]] = []
        while part := sorted(itertools.islice(remaining, size), key=key):
            if len(part) < size:
                parts.append(iter(part))
                break
            file = cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile()))
            _store(file, part)
            parts.append(_stored(file, len(part)))
        yield from heapq.merge(*parts, key=key)


def within_groups(rows: Iterable[Any], group: Key, key: Key) -> Iterator[Any]:
    """Yield the rows of each group in the order of their keys; the groups keep their order.

    :param group: the group of a row; the rows of a group follow each other
    """
    for _, members in itertools.groupby(rows, group):
        yield from sorted(members, key=key)


def _store(file: BinaryIO, rows: Iterable[Any]) -> None:
    pickler = pickle.Pickler(file, protocol=pickle.HIGHEST_PROTOCOL)
    for row in rows:
        pickler.dump(row)
        pickler.clear_memo()
    file.seek(0)


def _stored(file: BinaryIO, count: int) -> Iterator[Any]:
    for _ in range(count):
        yield pickle.load(file)  # noqa: S301 - _store() wrote this private file
