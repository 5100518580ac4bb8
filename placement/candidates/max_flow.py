"""Checks whether demands can be distributed over bins with limited capacity (maximum flow).

A demand is an integer amount and the bins that it may be taken from. `joint_conditions` uses the
slots of a query (see `model`) as demands, and their eligible providers as bins.

The check lets a demand take parts of its amount from several bins, but a slot takes its whole
amount from one provider. So the demands of every candidate can be distributed, but a distribution
does not prove that a candidate exists. The check is exact if each demand is for one unit, as with
isolated groups or single devices.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from placement.candidates.budget import Budget

# (amount, bins): parts of the amount may be taken from each of these bins.
Demand = tuple[int, Collection[int]]

# This many visits of bins count as one search step.
_VISITS_PER_STEP = 4
# The computation stops after this many visits for each (demand, bin) pair.
_MAX_VISITS = 16


def feasible(demands: Sequence[Demand], capacity: Callable[[int], int], budget: Budget) -> bool:
    """Whether all demands can be satisfied together.

    :param capacity: returns the capacity of a bin
    :param budget: receives the search steps of this check
    :returns: False if the demands cannot be satisfied together. True if they can, or if the
        computation was stopped because it takes too long
    """
    flow = _Flow(demands, capacity)
    max_visits = _MAX_VISITS * sum(len(bins) for _, bins in demands)
    satisfied = all(flow.satisfy(number, max_visits) for number in range(len(demands)))
    budget.spend(len(demands) + flow.visits // _VISITS_PER_STEP + 1)
    return satisfied


class _Free(dict[int, int]):
    """Bin -> free capacity, which is computed when the bin is first used."""

    def __init__(self, capacity: Callable[[int], int]) -> None:
        self._capacity = capacity

    def __missing__(self, bin_: int) -> int:
        self[bin_] = self._capacity(bin_)
        return self[bin_]


class _Flow:
    """The amounts that the demands take from the bins so far."""

    def __init__(self, demands: Sequence[Demand], capacity: Callable[[int], int]) -> None:
        self._demands = demands
        self._free = _Free(capacity)
        # Demand -> bin -> amount.
        self._taken: list[dict[int, int]] = [{} for _ in demands]
        # Bin -> the demands that take from it.
        self._takers: dict[int, set[int]] = {}
        self.visits = len(demands)

    def satisfy(self, number: int, max_visits: int) -> bool:
        """Take the amount of a demand from its bins; return False if this is not possible.

        If its bins have too little free capacity, other demands are moved to other bins. If that
        takes more than `max_visits` visits, the method stops and returns True.
        """
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
        """Search breadth-first for a chain of moves that gives a demand more capacity.

        In such a chain, the demand takes from a bin, another demand moves from that bin to a second
        bin, and so on, until the last bin has free capacity.

        :param number: the demand
        :param amount: the amount that the demand still needs
        :returns: the amount that was moved, at most `amount`; 0 if no chain exists
        """
        # Bin -> the demand that would move to it, and the bin that this demand would move from.
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
        """Execute the chain of moves that ends at the bin `free`; return the amount moved."""
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
        """Take an amount of a demand from a bin, instead of from the bin `left` if there is one."""
        taken = self._taken[demand]
        taken[bin_] = taken.get(bin_, 0) + amount
        self._takers.setdefault(bin_, set()).add(demand)
        if left is None:
            return
        taken[left] -= amount
        if not taken[left]:
            del taken[left]
            self._takers[left].discard(demand)
