"""The search limit: [placement] max_candidate_search_steps.

The work of a search is counted in search steps, so that it can be bounded for each request and
divided fairly among provider trees. One step is at most about a microsecond of work. The function
that does the work adds its steps to a `Steps`, which belongs to the search of one anchor.
A `SearchLimit` belongs to the whole request.
"""

import math


class Steps:
    """The search steps of one anchor so far, and the number at which the solver pauses.

    The solver adds to `used`. When `used` exceeds `pause_at`, the solver yields None instead of a
    candidate. It continues from there when the caller requests the next candidate.
    """

    __slots__ = ('pause_at', 'used')

    def __init__(self, pause_at: float = math.inf) -> None:
        self.used = 0
        self.pause_at = pause_at


class SearchLimit:
    """The number of search steps that a request may still use in all its trees."""

    __slots__ = ('exceeded', 'left')

    def __init__(self, steps: int = -1) -> None:
        """:param steps: negative for no limit"""
        self.left: float = math.inf if steps < 0 else steps
        # If true, candidates may be missing from the response.
        self.exceeded = False

    @property
    def finite(self) -> bool:
        """Whether the request has a limit."""
        return self.left < math.inf

    def spend(self, steps: int) -> bool:
        """Subtract steps; return False if that exceeds the limit."""
        self.left -= steps
        if self.left < 0:
            self.exceeded = True
            return False
        return True
