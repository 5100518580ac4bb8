"""A search as a whole: from the query to the candidates and summaries of the response.

    request -> facts.bind -> paging -> solver -> ordering -> selection -> summaries -> render

Each tree is searched in turns. If a tree uses up its turn without a candidate, it is postponed: its
search continues after all other trees had their first turn, when the database connection is closed.
So a tree with a long search does not hide a tree with a short one.
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
from dataclasses import dataclass
import functools
import logging
import random

import sqlalchemy as sa

from placement.candidates import (
    candidate_limits,
    facts,
    model,
    ordering,
    paging,
    render,
    solver,
    summaries,
)
from placement.candidates.search_steps import SearchLimit, Steps
from placement.db import engine

LOG = logging.getLogger(__name__)

# The search steps of the first turn of a tree, in addition to one for each slot and provider. Each
# further turn of the tree is longer by the factor.
FIRST_TURN = 1_000
TURN_GROWTH = 4
# Postponed trees stay in memory. When their slots have more options than this together, further
# trees are not postponed: their search ends with their first turn.
MAX_POSTPONED_OPTIONS = 400_000


@dataclass(frozen=True, slots=True)
class Options:
    """The configuration options of a search."""

    # max_allocation_candidates: negative for no maximum; 0 means 1
    max_candidates: int = -1
    # allocation_candidates_generation_strategy
    strategy: str = ordering.DEPTH_FIRST
    # max_candidate_search_steps: negative for no limit
    max_steps: int = -1
    # randomize_allocation_candidates
    randomize: bool = False

    @property
    def cap(self) -> int | None:
        """The maximum number of candidates that are generated."""
        return None if self.max_candidates < 0 else max(self.max_candidates, 1)


def allocation_candidates(query: model.Query[str], options: Options) -> render.SearchResult:
    """Return the allocation candidates for a query.

    :raises exception.UnknownResourceClasses: and
    :raises exception.UnknownTraits: for names that do not exist
    """
    with contextlib.ExitStack() as connection:
        return search_with(
            connection.enter_context(engine.reader(consistent=True)),
            query,
            options,
            rng=random.Random() if options.randomize else None,
            disconnect=connection.close,
        )


def search_with(
    conn: sa.Connection,
    query: model.Query[str],
    options: Options,
    limit: SearchLimit | None = None,
    rng: random.Random | None = None,
    disconnect: Callable[[], None] = lambda: None,
) -> render.SearchResult:
    """Return the allocation candidates for a query, with a given connection.

    :param conn: a connection whose statements all read the same state of the database
    :param limit: the search limit; without it, the limit of the options
    :param rng: draws the trees that are searched first, and shuffles the result
    :param disconnect: called when the connection is no longer needed, if the search continues
    :raises exception.UnknownResourceClasses: and
    :raises exception.UnknownTraits: for names that do not exist
    """
    bound, sharing_id = facts.bind(conn, query)
    cap = options.cap
    target = min((n for n in (cap, query.limit) if n is not None), default=None)
    strategy = _strategy(options.strategy, cap, target, rng)
    tree_search = _TreeSearch(
        paging.Cursor(conn, bound, sharing_id, target, rng),
        # With a cap, candidates that old clients cannot use count too: they are removed later.
        solver.PreparedQuery.of(bound, one_per_tree=not query.nested and cap is None),
        limit or SearchLimit(options.max_steps),
        in_turns=strategy == ordering.BREADTH_FIRST,
        rng=rng,
    )
    read_ahead = functools.partial(summaries.read_ahead, conn)
    for_old_clients = functools.partial(
        candidate_limits.uses_one_provider_per_tree, providers=tree_search.found.providers
    )
    candidates = candidate_limits.select(
        ordering.STRATEGIES[strategy](tree_search.streams(read_ahead, disconnect)),
        cap=cap,
        keep=None if query.nested or cap is None else for_old_clients,
        limit=query.limit,
        rng=rng,
    )
    tree_search.log_incomplete(len(candidates))
    slots = tree_search.prepared.slots
    return render.SearchResult(
        slots=slots,
        candidates=candidates,
        providers=tree_search.found.providers,
        summaries=summaries.read(
            conn, tree_search.ahead, tree_search.found, slots, candidates, whole_trees=query.nested
        ),
    )


def _strategy(strategy: str, cap: int | None, target: int | None, rng: random.Random | None) -> str:
    if target is None:
        return ordering.DEPTH_FIRST  # all candidates are requested: it needs the least memory
    if rng and cap is None:
        return ordering.BREADTH_FIRST  # a random sample of many trees, not of the first ones
    return strategy


class _Turns:
    """The turns of one anchor."""

    __slots__ = ('counted', 'length', 'productive', 'steps')

    def __init__(self, length: int, limit: SearchLimit) -> None:
        self.length = length
        self.steps = Steps(min(length, limit.left))
        # The steps that were subtracted from the search limit.
        self.counted = 0
        # Whether the current turn yielded a candidate.
        self.productive = False

    def begin_next(self, limit: SearchLimit) -> None:
        self.productive = False
        self.steps.pause_at = self.steps.used + min(self.length, limit.left)


class _TreeSearch:
    """The search of all trees, page by page, as far as candidates are requested."""

    def __init__(
        self,
        cursor: paging.Cursor,
        prepared: solver.PreparedQuery,
        limit: SearchLimit,
        in_turns: bool,
        rng: random.Random | None,
    ) -> None:
        """Prepare a search.

        :param in_turns: whether anchors may still have candidates after the last page is read
        """
        self.found = summaries.FoundProviders()
        self.prepared = prepared
        # What the summaries need, if the search continues without a connection.
        self.ahead: summaries.ReadAhead | None = None
        self._cursor = cursor
        # The cursor adds to this set.
        self._sharing_ids = cursor.sharing_ids
        self._limit = limit
        self._in_turns = in_turns
        self._rng = rng
        # The report on the current page; the cursor reads it.
        self._progress = paging.Progress()
        # The bindings that use only sharing providers, of all anchors so far.
        self._seen: set[model.Binding] = set()
        self._postponed: dict[int, model.Anchor] = {}
        self._postponed_options = 0
        # Whether the search of a tree ended because too many are postponed.
        self._trees_left_out = False

    def streams(
        self,
        read_ahead: Callable[[Iterable[model.Anchor]], summaries.ReadAhead],
        disconnect: Callable[[], None],
    ) -> Iterator[Iterator[model.Candidate | None]]:
        """Yield one stream of candidates for each anchor. None in a stream is a pause.

        :param read_ahead: called after the last page if the search continues
        :param disconnect: called after that; no statement follows
        """
        for anchor in self._anchors():
            if self._limit.exceeded:
                return
            if self._sharing_ids or not solver.is_single_provider(self.prepared, anchor):
                yield self._stream(anchor)
            # PERF: in most deployments most trees are one provider. A stream and the solver would
            # take twice as long for these.
            elif self._spend(1) and solver.can_serve_alone(self.prepared, anchor):
                self._progress.candidates += 1
                self._progress.fitting_anchors += self.found.add(anchor)  # a new anchor counts as 1
                binding = solver.binding_of_root(self.prepared, anchor)
                yield iter((model.Candidate(anchor.root.id, binding),))
        if self._postponed or self._in_turns:
            self.ahead = read_ahead([*self.found.anchors.values(), *self._postponed.values()])
            disconnect()

    def _anchors(self) -> Iterator[model.Anchor]:
        for page in self._cursor.pages():
            self._progress = page.progress
            yield from page.anchors
        self._progress = paging.Progress(steps_left=0)

    def _stream(self, anchor: model.Anchor) -> Iterator[model.Candidate | None]:
        """Yield the candidates of an anchor, and None when it is postponed."""
        if self._progress.steps_left < 0 and self._postpone(anchor):
            yield None
        root_id = anchor.root.id
        turns = _Turns(FIRST_TURN + len(anchor.tree) * len(self.prepared.slots), self._limit)
        # PERF: without turns, steps are counted once a turn: 1 ms less for 1,000 small trees
        # (2026-11). With turns, the caller may never request the end of one.
        for binding in self._bindings(anchor, turns.steps):
            if binding is None:
                if not self._count(turns):
                    return
                if not turns.productive or self._progress.steps_left <= 0:
                    if self._postpone(anchor):
                        yield None
                        turns.length *= TURN_GROWTH
                    elif self._limit.finite:
                        self._trees_left_out = True
                        return
                turns.begin_next(self._limit)
                continue
            if not turns.productive:
                self._progress.fitting_anchors += self.found.add(anchor)
                turns.productive = True
            self._progress.candidates += 1
            if self._in_turns and not self._count(turns):
                return
            yield model.Candidate(root_id, binding)
        self._count(turns)

    def _count(self, turns: _Turns) -> bool:
        """Subtract the steps since the last call; return False if the limit is exceeded."""
        steps = turns.steps.used - turns.counted
        turns.counted = turns.steps.used
        return self._spend(steps)

    def _spend(self, steps: int) -> bool:
        """Subtract steps from the page and the limit; return False if the limit is exceeded."""
        self._progress.steps_left -= steps
        return self._limit.spend(steps)

    def _bindings(self, anchor: model.Anchor, steps: Steps) -> Iterable[model.Binding | None]:
        bindings = solver.solve(self.prepared, anchor, steps, self._rng)
        if self._sharing_ids:
            return candidate_limits.without_duplicates(bindings, self._sharing_ids, self._seen)
        return bindings

    def _postpone(self, anchor: model.Anchor) -> bool:
        """Postpone an anchor; return False if too many are postponed already."""
        if anchor.root.id in self._postponed:
            return True
        kinds = len(self.prepared.unsuffixed) + len(self.prepared.suffixed)
        options = kinds * len(anchor.providers) + len(anchor.sharing_trees)
        if self._postponed_options + options > MAX_POSTPONED_OPTIONS:
            return False
        self._postponed[anchor.root.id] = anchor
        self._postponed_options += options
        return True

    def log_incomplete(self, count: int) -> None:
        """Log a warning if candidates may be missing.

        :param count: the number of returned candidates
        """
        if self._limit.exceeded:
            LOG.warning(
                'The search for allocation candidates ended at [placement] '
                'max_candidate_search_steps. Placement returns %d candidates; more may exist.',
                count,
            )
        if self._trees_left_out:
            LOG.warning(
                'The search for allocation candidates left out provider trees, because too many '
                'trees need a long search. Placement returns %d candidates; more may exist.',
                count,
            )
