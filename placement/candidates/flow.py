"""A maximum flow in whole units: whether demands can be distributed over bins.

A slot takes its whole amount from one provider, but a flow may split it. So a feasible flow is
necessary for a candidate and not sufficient. If every demand is for one unit (isolated groups,
single devices), it is exact.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from placement.candidates.search_steps import Steps

# (amount, bins): an amount that may be taken from any of these bins, in parts.
Demand = tuple[int, Collection[int]]

# Visits of bins that count as one search step.
_VISITS_PER_STEP = 4
# The flow is abandoned after this many visits for each bin of each demand.
_MAX_VISITS = 16


def feasible(demands: Sequence[Demand], capacity: Callable[[int], int], steps: Steps) -> bool:
    """Whether all demands can be satisfied together.

    :param capacity: returns the capacity of a bin
    :param steps: the work is added here
    :returns: False only if they cannot; True also if the computation takes too long
    """
    flow = _Flow(demands, capacity)
    max_visits = _MAX_VISITS * sum(len(bins) for _, bins in demands)
    satisfied = all(flow.satisfy(number, max_visits) for number in range(len(demands)))
    steps.used += flow.visits // _VISITS_PER_STEP + 1
    return satisfied


class _Free(dict[int, int]):
    """Bin -> free capacity. The capacity of a bin is computed when it is first needed."""

    def __init__(self, capacity: Callable[[int], int]) -> None:
        self._capacity = capacity

    def __missing__(self, bin_: int) -> int:
        self[bin_] = self._capacity(bin_)
        return self[bin_]


class _Flow:
    """The amount that each demand takes from each bin so far."""

    def __init__(self, demands: Sequence[Demand], capacity: Callable[[int], int]) -> None:
        self._demands = demands
        self._free = _Free(capacity)
        # Demand -> bin -> amount.
        self._taken: list[dict[int, int]] = [{} for _ in demands]
        # Bin -> the demands that take from it.
        self._takers: dict[int, set[int]] = {}
        self.visits = len(demands)

    def satisfy(self, number: int, max_visits: int) -> bool:
        """Satisfy one demand, if necessary by moving other demands to bins with free capacity."""
        amount, bins = self._demands[number]
        for bin_ in bins:
            if amount <= 0:
                return True
            self.visits += 1
            part = min(amount, self._free[bin_])
            if part > 0:
                self._move(part, number, bin_, None)
                self._free[bin_] -= part
                amount -= part
        while amount > 0 and self.visits <= max_visits:
            moved = self._augment(number, amount)
            if not moved:
                return False
            amount -= moved
        return True

    def _augment(self, number: int, amount: int) -> int:
        """Search breadth first for a path of moves that ends at a bin with free capacity.

        :returns: the additional amount for demand `number`, at most `amount`; 0 if no path exists
        """
        # Bin -> the demand that would take from it, and the bin that this demand would leave.
        path_to: dict[int, tuple[int, int | None]] = {}
        queue: list[tuple[int, int | None]] = [(number, None)]
        queued = {number}
        for demand, left in queue:
            for bin_ in self._demands[demand][1]:
                self.visits += 1
                if bin_ in path_to:
                    continue
                path_to[bin_] = demand, left
                if self._free[bin_] > 0:
                    return self._shift(bin_, amount, path_to)
                for other in self._takers.get(bin_, ()):
                    if other not in queued:
                        queued.add(other)
                        queue.append((other, bin_))
        return 0

    def _shift(self, free: int, amount: int, path_to: Mapping[int, tuple[int, int | None]]) -> int:
        """Move as much as possible along the path that ends at the bin `free`."""
        path = []
        moved, bin_ = min(amount, self._free[free]), free
        while True:
            demand, left = path_to[bin_]
            path.append((demand, bin_, left))
            if left is None:
                break
            moved = min(moved, self._taken[demand][left])
            bin_ = left
        self._free[free] -= moved
        for demand, bin_, left in path:
            self._move(moved, demand, bin_, left)
        return moved

    def _move(self, amount: int, demand: int, bin_: int, left: int | None) -> None:
        """Move an amount of a demand to a bin, from the bin `left` unless that is None."""
        taken = self._taken[demand]
        taken[bin_] = taken.get(bin_, 0) + amount
        self._takers.setdefault(bin_, set()).add(demand)
        if left is None:
            return
        taken[left] -= amount
        if not taken[left]:
            del taken[left]
            self._takers[left].discard(demand)
