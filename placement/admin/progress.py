"""How the functions of this package report the progress of long work to their caller."""

from collections.abc import Callable, Iterator
import contextlib
from typing import Protocol

# Adds a number of completed items to the progress.
Advance = Callable[[int], object]


class Progress(Protocol):
    """Starts to report the progress of one step of the work."""

    def __call__(
        self, label: str, total: int | None = None, /
    ) -> contextlib.AbstractContextManager[Advance]:
        """Return a context manager whose value the step calls with completed items.

        :param label: what the step does, for example 'Reading providers'
        :param total: the number of items of the step; None if it is not known
        """
        ...


@contextlib.contextmanager
def silent(_label: str, _total: int | None = None) -> Iterator[Advance]:
    """Report nothing."""
    yield lambda _count: None
