"""Selects the candidates of the response: their order, duplicates, and maximum number.

The options are [placement] allocation_candidates_generation_strategy, max_allocation_candidates and
randomize_allocation_candidates.

An *anchor* is a provider tree with the sharing providers available to it. The search has one stream
of candidates for each anchor. All functions are lazy: they request a candidate only when the
response needs one more.

With randomize_allocation_candidates, the search creates a random number generator (`rng`), which is
used as follows:

* If the number of candidates is limited, `paging` reads the trees in random order.
* `paging` shuffles the trees of each page.
* `solver` and `backtracking` shuffle the providers that they try for each request group.
* `same_subtree` shuffles the subtrees that it tries.
* `select` shuffles the candidates of the response.

Without the option, `rng` is None. The candidates then have the same order in each response to the
same request, unless the stored data changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import itertools
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


def shuffled(items: Sequence[T], rng: random.Random | None) -> Sequence[T]:
    """Return the items in random order, or unchanged if `rng` is None."""
    return rng.sample(items, len(items)) if rng else items


def depth_first(streams: Streams[T]) -> Iterator[T]:
    """Yield all candidates of one anchor before those of the next."""
    return itertools.chain.from_iterable(streams)


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
    DEPTH_FIRST: depth_first,
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
    candidate: model.Candidate, providers: Mapping[int, model.Provider]
) -> bool:
    """Whether the candidate uses at most one provider of each tree.

    Before microversion 1.29, Placement returns only such candidates.

    :param providers: provider id -> provider, including all providers of the candidate
    """
    roots = [providers[id_].root_id for id_ in set(candidate.binding)]
    return len(roots) == len(set(roots))
