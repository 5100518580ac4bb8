"""Counts search steps and the bytes of candidates, and applies the limits of a request to them.

The options are [placement] max_candidate_search_steps and max_candidates_response_size.

A search step is a unit of work: one step takes at most about one microsecond. Counting steps makes
it possible to limit the work of a request and to divide it among provider trees. The search of a
provider tree spends steps on a `Budget` of its own, and ends when the budget is spent. Each request
has one `SearchLimit` for all of its trees.
"""

import math

# The number of search steps if there is no limit. No search can use so many.
UNLIMITED = 2**53


class Budget:
    """The search steps of one search of a tree.

    PERF: `left` is an attribute, because the search reads it for each slot that it binds. If it is
    negative, the budget is spent, and the search ends without the remaining candidates.
    """

    __slots__ = ('_granted', 'left')

    def __init__(self, steps: int = UNLIMITED) -> None:
        """Create a budget.

        :param steps: the number of search steps
        """
        self.left = self._granted = steps

    @property
    def used(self) -> int:
        """The number of steps that were spent."""
        return self._granted - self.left

    def spend(self, steps: int) -> None:
        """Count steps of the search. The last ones may exceed the budget."""
        self.left -= steps

    def renew(self, steps: int) -> None:
        """Begin anew with these steps."""
        self.left = self._granted = steps


class SearchLimit:
    """The search steps that the request may still use, and the bytes that it may still return."""

    __slots__ = ('_steps', 'left', 'size_left')

    def __init__(self, steps: int = -1, size: int = -1) -> None:
        """Create the limits of a request. A negative value means no limit.

        :param steps: the maximum number of steps
        :param size: the maximum size in bytes of all candidates other than the first one of each
            tree
        """
        self.left = self._steps = steps if steps >= 0 else UNLIMITED
        # The bytes left. Negative if a candidate was left out of the response because of its size.
        self.size_left = size if size >= 0 else math.inf

    @property
    def used(self) -> int:
        """The number of steps that the request has used."""
        return self._steps - self.left

    @property
    def exceeded(self) -> bool:
        """Whether the request used more steps, so that candidates may be missing."""
        return self.left < 0

    def spend(self, steps: int) -> bool:
        """Subtract steps from the steps left; return False if the limit is exceeded."""
        self.left -= steps
        return self.left >= 0

    @property
    def size_exceeded(self) -> bool:
        """Whether candidates are missing from the response because of their size."""
        return self.size_left < 0
