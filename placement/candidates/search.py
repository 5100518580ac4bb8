"""GET /allocation_candidates as a whole: query in, answer out."""

from collections.abc import Iterable, Iterator
import logging
import random
from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.candidates import model, ordering, render, snapshot, solver

LOG = logging.getLogger(__name__)

# Trees in the first page, which is read without asking the database who fits; it shows whether
# most do.
FIRST_PAGE = 16
LARGEST_PAGE = 2048
# Pages grow by this, when nothing better is known.
GROWTH = 8


def find(ctx: Any, query: model.Query[str], rng: random.Random | None = None) -> render.Answer:
    """Find candidates for a query.

    :param ctx: the request's context, for the options
    :param rng: where chance comes from, when the options ask for it
    :raises exception.UnknownResourceClasses: and
    :raises exception.UnknownTraits: for names that do not exist
    """
    options = ctx.config.placement
    with db_api.reader(consistent=True) as conn:
        return search(
            conn,
            query,
            cap=options.max_allocation_candidates,
            strategy=options.allocation_candidates_generation_strategy,
            effort=solver.Effort(options.max_candidate_search_steps),
            rng=(rng or random.Random()) if options.randomize_allocation_candidates else None,
        )


def search(
    conn: sa.Connection,
    query: model.Query[str],
    cap: int = -1,
    strategy: str = ordering.DEPTH_FIRST,
    effort: solver.Effort | None = None,
    rng: random.Random | None = None,
) -> render.Answer:
    """Find candidates with a connection whose statements all see one state.

    :param cap: candidates that are looked at in all; negative for no bound, and 0 is 1
    :param strategy: in which order they are looked at
    :param effort: bounds the work
    :param rng: draws the trees that are tried first and shuffles what is found
    """
    bound, sharing_id = snapshot.lookup(conn, query)
    capped = None if cap < 0 else max(cap, 1)
    source = snapshot.Source(conn, bound, sharing_id, rng)
    walk = _Walk(
        source,
        # Below the cap the search may leave out what old clients do not understand.
        solver.Task.of(bound, one_per_tree=not query.nested and capped is None),
        effort or solver.Effort(),
        wanted=min((n for n in (capped, query.limit) if n is not None), default=None),
        rng=rng,
    )
    if rng and capped is None:
        strategy = ordering.BREADTH_FIRST  # a sample of many trees, not of the first ones
    if walk.wanted is None:
        strategy = ordering.DEPTH_FIRST  # all are wanted: what takes no memory will do
    candidates = ordering.take(
        ordering.STRATEGIES[strategy](walk.streams()),
        cap=capped,
        keep=None if query.nested or capped is None else walk.one_provider_a_tree,
        limit=query.limit,
        rng=rng,
    )
    if walk.effort.struck:
        LOG.warning(
            'The search for allocation candidates was ended after [placement] '
            'max_candidate_search_steps: %d candidates are returned, there may be more.',
            len(candidates),
        )
    return _answer(source, walk, query.nested, candidates)


class _Walk:
    """Goes from anchor to anchor, as far as somebody pulls."""

    def __init__(
        self,
        source: snapshot.Source,
        task: solver.Task,
        effort: solver.Effort,
        wanted: int | None,
        rng: random.Random | None,
    ):
        self.task = task
        self.effort = effort
        self.wanted = wanted
        # The anchors that gave candidates, and everybody in reach of them.
        self.anchors: dict[int, model.Anchor] = {}
        self.providers: dict[int, model.Provider] = {}
        self._source = source
        self._rng = rng
        self._found = 0
        self._seen: set[model.Chosen] = set()

    def streams(self) -> Iterator[Iterator[model.Candidate]]:
        """One stream of candidates for each anchor."""
        for anchor in self._all_anchors():
            if self.effort.struck:
                return
            yield self._stream(anchor)

    def _stream(self, anchor: model.Anchor) -> Iterator[model.Candidate]:
        found: Iterable[model.Chosen] = solver.solve(self.task, anchor, self.effort, self._rng)
        if self._source.sharing:
            found = ordering.unseen(found, self._source.sharing, self._seen)
        root_id = anchor.root.id
        for chosen in found:
            if root_id not in self.anchors:
                self.anchors[root_id] = anchor
                for provider in (*anchor.tree, *anchor.lenders):
                    self.providers[provider.id] = provider
            self._found += 1
            yield model.Candidate(root_id, chosen)

    def _all_anchors(self) -> Iterator[model.Anchor]:
        """All anchors, page by page.

        The first pages are read without asking the database who fits. When that was not worth
        it, because most trees gave nothing, it is asked from there on.
        """
        size = FIRST_PAGE if self.wanted is None else min(self.wanted + 3, FIRST_PAGE)
        while True:
            page = self._source.next_page(size)
            found, fitting = self._found, len(self.anchors)
            yield from self._in_some_order(page.anchors)
            if not page.more:
                return
            found, fitting = self._found - found, len(self.anchors) - fitting
            if not self._source.strict and fitting * 2 < len(page.anchors):
                apart = self._source.be_strict(page.anchors)
                yield from self._in_some_order(apart)
            size = self._next_size(size, found, fitting)

    def _in_some_order(self, anchors: tuple[model.Anchor, ...]) -> Iterable[model.Anchor]:
        return self._rng.sample(anchors, len(anchors)) if self._rng else anchors

    def _next_size(self, size: int, found: int, fitting: int) -> int:
        """How many trees to read next, by what those of the last page gave."""
        if self.wanted is None:
            return min(size * GROWTH, LARGEST_PAGE)
        # With a tenth more than needed one page more is often spared.
        each = max(found / fitting, 1.0) if fitting else 1.0
        missing = (self.wanted - self._found) / each * 1.1 + 1
        return max(FIRST_PAGE, min(int(missing), LARGEST_PAGE))

    def one_provider_a_tree(self, candidate: model.Candidate) -> bool:
        """Whether a client that knows no nesting can use the candidate."""
        roots = [self.providers[id_].root_id for id_ in set(candidate.chosen)]
        return len(roots) == len(set(roots))


def _answer(
    source: snapshot.Source,
    walk: _Walk,
    nested: bool,
    candidates: list[model.Candidate],
) -> render.Answer:
    serving = _serving(walk.task.slots, candidates)
    if nested:
        summarised = _whole_trees(source, walk, {walk.providers[id_].root_id for id_ in serving})
    else:
        summarised = [walk.providers[id_] for id_ in serving]
    class_ids = {class_id for provider in summarised for class_id in provider.stock}
    trait_ids = frozenset().union(*{provider.traits for provider in summarised})
    class_names, trait_names = source.names(class_ids, trait_ids)
    return render.Answer(
        slots=walk.task.slots,
        candidates=candidates,
        providers=walk.providers,
        summarised=summarised,
        class_names=class_names,
        trait_names=trait_names,
    )


def _serving(
    slots: tuple[model.Slot, ...], candidates: Iterable[model.Candidate]
) -> dict[int, None]:
    """The ids of all that give resources, in the order in which they turn up."""
    if all(slot.amounts for slot in slots):
        return dict.fromkeys(id_ for _, chosen in candidates for id_ in chosen)
    giving = [number for number, slot in enumerate(slots) if slot.amounts]
    return dict.fromkeys(chosen[number] for _, chosen in candidates for number in giving)


def _whole_trees(source: snapshot.Source, walk: _Walk, root_ids: set[int]) -> list[model.Provider]:
    here = [
        provider
        for root_id in root_ids
        if root_id in walk.anchors
        for provider in walk.anchors[root_id].tree
    ]
    elsewhere = root_ids - walk.anchors.keys()
    known = [provider for provider in walk.providers.values() if provider.root_id in elsewhere]
    return here + source.whole_trees(elsewhere, known)
