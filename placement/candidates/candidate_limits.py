"""Which candidates are returned: duplicates, max_allocation_candidates, limit, and old clients.

Pure functions over lazy streams: a candidate that is not requested is not searched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import itertools
import random

from placement.candidates import model
from placement.candidates.randomize import shuffled


def without_duplicates(
    bindings: Iterable[model.Binding | None], sharing_ids: set[int], seen: set[model.Binding]
) -> Iterator[model.Binding | None]:
    """Drop bindings that another anchor has yielded before; keep pauses.

    Only bindings that use nothing but sharing providers exist for several anchors.

    :param sharing_ids: the ids of all sharing providers of the anchor, at least
    :param seen: the bindings of other anchors to sharing providers; the new ones are added
    """
    for binding in bindings:
        if binding is not None and sharing_ids.issuperset(binding):
            if binding in seen:
                continue
            seen.add(binding)
        yield binding


def select(
    candidates: Iterable[model.Candidate],
    cap: int | None,
    keep: Callable[[model.Candidate], bool] | None,
    limit: int | None,
    rng: random.Random | None,
) -> list[model.Candidate]:
    """Return the candidates of the response.

    :param cap: the maximum number of candidates that are generated
    :param keep: whether a generated candidate is returned; None to keep all
    :param limit: the maximum number of candidates that are returned
    :param rng: shuffles the result
    """
    generated = itertools.islice(candidates, cap)
    kept = filter(keep, generated) if keep else generated
    return list(shuffled(list(itertools.islice(kept, limit)), rng))


def uses_one_provider_per_tree(
    candidate: model.Candidate, providers: Mapping[int, model.Provider]
) -> bool:
    """Whether clients before microversion 1.29 can use the candidate.

    :param providers: the providers of the candidate, by id
    """
    roots = [providers[id_].root_id for id_ in set(candidate.binding)]
    return len(roots) == len(set(roots))
