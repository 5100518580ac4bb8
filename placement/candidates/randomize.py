"""Implements [placement] randomize_allocation_candidates.

If the option is set, the search creates a random number generator (`rng`), which is used as
follows:

* If the number of candidates is limited, `page_order` reads the trees in random order.
* `paging` shuffles the trees of each page.
* `solver` shuffles the providers that it tries for each request group.
* `same_subtree` shuffles the subtrees that it tries.
* `candidate_limits` shuffles the candidates of the response.

If the option is not set, `rng` is None. The candidates then have the same order in each response to
the same request, unless the stored data changes.
"""

from collections.abc import Sequence
import random
from typing import TypeVar

T = TypeVar('T')


def shuffled(items: Sequence[T], rng: random.Random | None) -> Sequence[T]:
    """Return the items in random order, or unchanged if `rng` is None."""
    return rng.sample(items, len(items)) if rng else items
