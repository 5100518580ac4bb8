"""[placement] randomize_allocation_candidates.

If the option is set, a search has a random generator (`rng`) and uses it in four places: `paging`
starts at a random root and shuffles the anchors of each page, the solver shuffles the options of
each slot, `same_subtree` shuffles the tops of subtrees, and `candidate_limits` shuffles the result.
Without the option `rng` is None, and equal requests on unchanged data return the same order.
"""

from collections.abc import Sequence
import random
from typing import TypeVar

T = TypeVar('T')


def shuffled(items: Sequence[T], rng: random.Random | None) -> Sequence[T]:
    """Return the items in random order; without `rng` the same sequence."""
    return rng.sample(items, len(items)) if rng else items
