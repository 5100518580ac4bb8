"""Selects the candidates of the response: their order, duplicates, and limits.

The options are [placement] allocation_candidates_generation_strategy, max_allocation_candidates,
randomize_allocation_candidates, max_candidate_search_steps and max_candidates_response_size.

An *anchor* is a provider tree with the sharing providers available to it. The search has one stream
of candidates for each anchor. All functions are lazy: they request a candidate only when the
response needs one more.

With randomize_allocation_candidates, the search creates a random number generator (`rng`), which is
used as follows:

* If the number of candidates is limited, `pages` reads the trees in random order.
* `pages` shuffles the trees of each page.
* `solver` and `backtracking` shuffle the providers that they try for each request group.
* `same_subtree` shuffles the subtrees that it tries.
* `select` shuffles the candidates of the response.

Without the option, `rng` is None. The candidates then have the same order in each response to the
same request, unless the stored data changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import itertools
import math
import random
from typing import TypeVar

from placement.candidates import model

T = TypeVar('T')
# One stream of candidates for each anchor.
Streams = Iterable[Iterator[T]]

DEPTH_FIRST = 'depth-first'
BREADTH_FIRST = 'breadth-first'

# The sizes in bytes of a quoted UUID, and of the rest of an allocation of one provider.
_SIZE_OF_UUID = 38
_SIZE_OF_ALLOCATION = _SIZE_OF_UUID + len(':{"resources":{}},')

# The number of search steps if there is no limit. No search can use so many.
UNLIMITED = 2**53


class Budget:
    """The search steps that a request may still use, and the bytes that it may still return.

    A search step is a unit of work: one step takes at most about one microsecond. All provider
    trees of a request spend the same steps; `grant` divides them among the trees.

    PERF: `left` and `end` are attributes, because the search reads them for each slot that it
    binds.
    """

    __slots__ = ('_steps', 'end', 'left', 'size_left')

    def __init__(self, steps: int = -1, size: int = -1) -> None:
        """Create the budget of a request. A negative value means no limit.

        :param steps: the maximum number of steps
        :param size: the maximum size in bytes of all candidates other than the first one of each
            tree
        """
        self.left = self._steps = steps if steps >= 0 else UNLIMITED
        # The search of the current tree ends when `left` is below this number.
        self.end = 0
        # The bytes left. Negative if a candidate was left out of the response because of its size.
        self.size_left = size if size >= 0 else math.inf

    @property
    def used(self) -> int:
        """The number of steps that were spent."""
        return self._steps - self.left

    @property
    def is_spent(self) -> bool:
        """Whether the search of the current tree ends without its remaining candidates."""
        return self.left < self.end

    @property
    def is_exceeded(self) -> bool:
        """Whether the request used more steps than its limit, so that candidates may be missing."""
        return self.left < 0

    @property
    def is_size_exceeded(self) -> bool:
        """Whether candidates are missing from the response because of their size."""
        return self.size_left < 0

    @property
    def is_cut(self) -> bool:
        """Whether candidates may be missing from the response because of a limit."""
        return self.is_exceeded or self.is_size_exceeded

    def spend(self, steps: int) -> None:
        """Count steps of the search. The last ones may exceed the budget."""
        self.left -= steps

    def grant(self, steps: int, end: int = 0) -> None:
        """Let the search of a tree use some of the steps that are left.

        :param end: the number of steps that must be left for other trees in any case
        """
        self.end = max(self.left - steps, end)


def shuffled(items: Sequence[T], rng: random.Random | None) -> Sequence[T]:
    """Return the items in random order, or unchanged if `rng` is None."""
    return rng.sample(items, len(items)) if rng else items


def breadth_first(streams: Streams[T]) -> Iterator[T]:
    """Yield one candidate of each anchor in turn, until all streams are exhausted."""
    while streams:
        waiting = []
        for stream in streams:
            for candidate in stream:
                yield candidate
                waiting.append(stream)
                break
        streams = waiting


STRATEGIES: dict[str, Callable[[Streams[T]], Iterator[T]]] = {
    DEPTH_FIRST: itertools.chain.from_iterable,  # all candidates of one anchor before the next
    BREADTH_FIRST: breadth_first,
}


def is_new(binding: model.Binding, sharing_ids: set[int], seen: set[model.Binding]) -> bool:
    """Whether no other anchor has yielded this binding before.

    An anchor is a provider tree with the sharing providers available to it. A binding is the list
    of providers that a candidate uses. Several anchors can yield the same binding only if it uses
    nothing but sharing providers.

    :param sharing_ids: the ids of sharing providers, including all those of the anchor
    :param seen: the bindings that use only sharing providers, of all anchors; updated in place
    """
    if not sharing_ids.issuperset(binding):
        return True
    if binding in seen:
        return False
    seen.add(binding)
    return True


def select(
    candidates: Iterable[model.Candidate],
    cap: int | None,
    keep: Callable[[model.Candidate], bool] | None,
    limit: int | None,
    rng: random.Random | None,
) -> list[model.Candidate]:
    """Return the candidates of the response.

    :param cap: the maximum number of candidates to generate
    :param keep: returns whether to keep a generated candidate; None to keep all candidates
    :param limit: the maximum number of candidates to return
    :param rng: shuffles the returned candidates; None to keep their order
    """
    generated = itertools.islice(candidates, cap)
    kept = filter(keep, generated) if keep else generated
    return list(shuffled(list(itertools.islice(kept, limit)), rng))


def candidate_size(query: model.Query[str]) -> int:
    """Return the size of a candidate in the response, in bytes.

    The value is exact if each slot (see `model`) is bound to another provider, and the microversion
    is 1.34 or later. Otherwise, candidates are smaller.
    """
    size = len('{"allocations":{},"mappings":{}},') - 1  # without a comma after the last allocation
    for group in query.groups:
        amounts = sum(len(f'"{name}":{amount},') for name, amount in group.amounts)
        providers = min(len(group.amounts), 1) if group.suffix else len(group.amounts)
        commas = providers if group.amounts else 0  # no comma after the last amount of a provider
        size += amounts - commas + providers * _SIZE_OF_ALLOCATION
        bound = 1 if group.suffix else len(group.amounts)
        size += len(f'"{group.suffix}":[],') + bound * (_SIZE_OF_UUID + len(',')) - len(',')
    return size - len(',')  # no comma after the last mapping


def uses_one_provider_per_tree(
    candidate: model.Candidate, anchors: Mapping[int, model.Anchor]
) -> bool:
    """Whether the candidate uses at most one provider of each tree.

    Before microversion 1.29, Placement returns only such candidates.

    :param anchors: root id -> anchor, including the anchor of the candidate
    """
    used = set(candidate.binding)
    roots = [p.root_id for p in anchors[candidate.root_id].providers if p.id in used]
    return len(roots) == len(set(roots))
