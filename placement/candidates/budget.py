"""Counts search steps and the bytes of candidates, and applies the limits of a request to them.

The options are [placement] max_candidate_search_steps and max_candidates_response_size.

A search step is a unit of work: one step takes at most about one microsecond. Counting steps makes
it possible to limit the work of a request and to divide it evenly among provider trees.

The search of each provider tree has its own `Budget`, on which it spends the steps of its work. A
budget is granted in slices. When a slice is spent, the search yields `PAUSE` in place of a
candidate, and its caller decides when it continues with the next slice. Each request has one
`SearchLimit` for all of its trees.
"""

import enum
import math
from typing import Final

# The number of search steps if there is no limit. No search can use so many.
UNLIMITED = 2**53


class Pause(enum.Enum):
    """The type of `PAUSE`."""

    PAUSE = 'pause'


# What a search yields in place of a candidate when the slice of its budget is spent. The search
# continues when the caller requests the next candidate.
PAUSE: Final = Pause.PAUSE


class Budget:
    """The search steps of one tree.

    PERF: `left` is an attribute, because the search reads it for each slot that it binds. If it is
    negative, the slice is spent, and the search must pause.
    """

    __slots__ = ('_counted', '_granted', 'left')

    def __init__(self, steps: int = UNLIMITED) -> None:
        """Create a budget with a first slice.

        :param steps: the number of search steps of the slice
        """
        self.left = steps
        self._granted = steps
        self._counted = 0

    @property
    def used(self) -> int:
        """The number of steps that were spent on all slices."""
        return self._granted - self.left

    def spend(self, steps: int) -> None:
        """Count steps of the search. The last ones of a slice may exceed it."""
        self.left -= steps

    def grant(self, steps: int) -> None:
        """Begin the next slice; steps that exceeded or are left from the last one do not count."""
        self._granted += steps - self.left
        self.left = steps

    def new_steps(self) -> int:
        """Return the number of steps that were spent since the last call."""
        used = self._granted - self.left
        new, self._counted = used - self._counted, used
        return new


class SearchLimit:
    """The search steps that the request may still use, and the bytes that it may still return."""

    __slots__ = ('_steps', 'exceeded', 'finite', 'left', 'size_left')

    def __init__(self, steps: int = -1, size: int = -1) -> None:
        """Create the limits of a request. A negative value means no limit.

        :param steps: the maximum number of steps
        :param size: the maximum size in bytes of all candidates other than the first one of each
            tree
        """
        # Whether the request has a limit.
        self.finite = steps >= 0
        self._steps = steps if self.finite else UNLIMITED
        self.left = self._steps
        # Whether the request used more steps. If so, candidates may be missing from the response.
        self.exceeded = False
        # The bytes left. Negative if a candidate was left out of the response because of its size.
        self.size_left = size if size >= 0 else math.inf

    @property
    def used(self) -> int:
        """The number of steps that the request has used."""
        return self._steps - self.left

    def spend(self, steps: int) -> bool:
        """Subtract steps from the steps left; return False if the limit is exceeded."""
        self.left -= steps
        if self.left < 0:
            self.exceeded = True
            return False
        return True

    @property
    def size_exceeded(self) -> bool:
        """Whether candidates are missing from the response because of their size."""
        return self.size_left < 0
