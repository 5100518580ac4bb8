"""How the functions of this package report the progress of long work to their caller."""

from collections.abc import Callable, Iterator
import contextlib

# Adds a number of completed items to the progress.
Advance = Callable[[int], object]

# Starts to report the progress of one step of the work. The arguments are what the step does, for
# example 'Reading providers', and the number of its items, if it is known. The value of the context
# manager is the function that the step calls with completed items.
Progress = Callable[..., contextlib.AbstractContextManager[Advance]]


@contextlib.contextmanager
def silent(_label: str, _total: int | None = None) -> Iterator[Advance]:
    """Report nothing."""
    yield lambda _count: None
