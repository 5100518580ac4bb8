"""A maximum flow in whole units: whether demands can be spread over bins.

Slots take whole pieces from one provider, so a flow is necessary for a candidate and not
sufficient. If every demand is for one unit (isolation, single devices) it is exact.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from placement.candidates.steps import Steps

# (amount, bins): an amount that may come from any of these bins, in pieces.
Demand = tuple[int, Collection[int]]

# Visits of bins that count as one step.
_VISITS_A_STEP = 4
# A flow that takes more visits than this for each bin of each demand is abandoned.
_LONGEST = 16


def feasible(demands: Sequence[Demand], capacity: Callable[[int], int], steps: Steps) -> bool:
    """Whether all demands can be met together.

    :param capacity: gives the capacity of a bin
    :param steps: the work is added here
    :returns: False only if they cannot; True as well if finding out would take too long
    """
    flow = _Flow(demands, capacity)
    longest = _LONGEST * sum(len(bins) for _, bins in demands)
    met = all(flow.meet(number, longest) for number in range(len(demands)))
    steps.used += flow.visits // _VISITS_A_STEP + 1
    return met


class _Free(dict[int, int]):
    """Bin -> free capacity; a bin is looked at when it is needed."""

    def __init__(self, capacity: Callable[[int], int]):
        self._capacity = capacity

    def __missing__(self, bin_: int) -> int:
        self[bin_] = self._capacity(bin_)
        return self[bin_]


class _Flow:
    """What each demand takes from each bin so far."""

    def __init__(self, demands: Sequence[Demand], capacity: Callable[[int], int]):
        self._demands = demands
        self._free = _Free(capacity)
        # Demand -> bin -> amount, and bin -> the demands that take from it.
        self._taken: list[dict[int, int]] = [{} for _ in demands]
        self._takers: dict[int, set[int]] = {}
        self.visits = len(demands)

    def meet(self, number: int, longest: int) -> bool:
        """Meet a demand, if necessary by moving others to bins with free capacity."""
        amount, bins = self._demands[number]
        for bin_ in bins:
            if amount <= 0:
                return True
            self.visits += 1
            piece = min(amount, self._free[bin_])
            if piece > 0:
                self._move(piece, number, bin_, None)
                self._free[bin_] -= piece
                amount -= piece
        while amount > 0 and self.visits <= longest:
            moved = self._make_way(number, amount)
            if not moved:
                return False
            amount -= moved
        return True

    def _make_way(self, number: int, amount: int) -> int:
        """Move what others take to their other bins until there is free capacity.

        :returns: how much more `number` gets, at most `amount`; 0 if there is no way
        """
        # Bin -> the demand that would take from it, and the bin that it would leave for that.
        reached: dict[int, tuple[int, int | None]] = {}
        queue: list[tuple[int, int | None]] = [(number, None)]
        queued = {number}
        for demand, left in queue:
            for bin_ in self._demands[demand][1]:
                self.visits += 1
                if bin_ in reached:
                    continue
                reached[bin_] = demand, left
                if self._free[bin_] > 0:
                    return self._shift(bin_, amount, reached)
                for other in self._takers.get(bin_, ()):
                    if other not in queued:
                        queued.add(other)
                        queue.append((other, bin_))
        return 0

    def _shift(self, free: int, amount: int, reached: Mapping[int, tuple[int, int | None]]) -> int:
        """Move as much as possible along the way that ends at a bin with free capacity."""
        way = []
        moved, bin_ = min(amount, self._free[free]), free
        while True:
            demand, left = reached[bin_]
            way.append((demand, bin_, left))
            if left is None:
                break
            moved = min(moved, self._taken[demand][left])
            bin_ = left
        self._free[free] -= moved
        for demand, bin_, left in way:
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
