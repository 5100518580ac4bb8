"""Search steps: the work of a search is counted, so that it can be bounded and shared.

A step is at most about a microsecond of work. The function that does the work adds it to `Steps`,
which belongs to the search in one tree. `SearchLimit` belongs to the whole request.
"""

import math


class Steps:
    """The steps that the search in one tree has taken, and when it has to pause.

    The solver adds to `used`. As soon as that is above `pause_at` the solver pauses: it yields
    None instead of a candidate, and goes on from there when the caller resumes it.
    """

    __slots__ = ('pause_at', 'used')

    def __init__(self, pause_at: float = math.inf):
        self.used = 0
        self.pause_at = pause_at


class SearchLimit:
    """How many steps a request may still take in all its trees."""

    __slots__ = ('incomplete', 'left')

    def __init__(self, steps: int = -1):
        """:param steps: negative for no limit"""
        self.left: float = math.inf if steps < 0 else steps
        # Whether candidates may be missing because steps were.
        self.incomplete = False

    @property
    def finite(self) -> bool:
        return self.left < math.inf

    def spend(self, steps: int) -> bool:
        """Take steps; return whether there were as many."""
        self.left -= steps
        if self.left < 0:
            self.incomplete = True
            return False
        return True
