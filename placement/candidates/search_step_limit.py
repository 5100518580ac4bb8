"""Implements the limits of a request: of its search steps, and of the size of its response.

The options are [placement] max_candidate_search_steps and max_candidates_response_size.

A search step is a unit of work: one step takes at most about one microsecond. Counting steps makes
it possible to limit the work of a request and to divide it evenly among provider trees.

Each provider tree that is searched has its own `Steps`, and each function of the search adds its
work to this object. Each request has one `SearchLimit` for all of its trees.
"""

import math

# The number of search steps if there is no limit. No search can use so many.
_UNLIMITED = 2**53


class Steps:
    """The number of search steps used for one tree, and the number at which its search pauses.

    The solver adds its work to `used`. When `used` exceeds `pause_at`, the solver yields None
    instead of a candidate. The search continues when the caller requests the next candidate.
    """

    __slots__ = ('pause_at', 'used')

    def __init__(self, pause_at: float = math.inf) -> None:
        self.used = 0
        self.pause_at = pause_at


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
        self._steps = steps if self.finite else _UNLIMITED
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
