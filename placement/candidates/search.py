"""GET /allocation_candidates as a whole: query in, answer out."""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import logging
import random
from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.candidates import model, ordering, render, snapshot, solver
from placement.candidates.steps import SearchLimit, Steps

LOG = logging.getLogger(__name__)

# Trees in the first page, which is read without asking the database who fits; it shows whether
# most do.
FIRST_PAGE = 16
LARGEST_PAGE = 2048
# Pages grow by this, when nothing better is known.
GROWTH = 8
# Steps between two pages. All that time a connection and its view of the database are occupied.
PAGE_STEPS = 100_000
# Steps that a tree may take before it is set aside, beside one for each slot and provider; each
# further turn is longer by the factor.
FIRST_TURN = 1_000
TURN_GROWTH = 4
# Options of the slots of trees that are set aside: they stay in memory. Further trees are not
# searched any more when they have used up their first turn.
MOST_SET_ASIDE = 400_000


def find(ctx: Any, query: model.Query[str], rng: random.Random | None = None) -> render.Answer:
    """Find candidates for a query.

    :param ctx: the request's context, for the options
    :param rng: where chance comes from, when the options ask for it
    :raises exception.UnknownResourceClasses: and
    :raises exception.UnknownTraits: for names that do not exist
    """
    options = ctx.config.placement
    with contextlib.ExitStack() as connected:
        return search(
            connected.enter_context(db_api.reader(consistent=True)),
            query,
            cap=options.max_allocation_candidates,
            strategy=options.allocation_candidates_generation_strategy,
            limit=SearchLimit(options.max_candidate_search_steps),
            rng=(rng or random.Random()) if options.randomize_allocation_candidates else None,
            release=connected.close,
        )


def search(
    conn: sa.Connection,
    query: model.Query[str],
    cap: int = -1,
    strategy: str = ordering.DEPTH_FIRST,
    limit: SearchLimit | None = None,
    rng: random.Random | None = None,
    release: Callable[[], None] = lambda: None,
) -> render.Answer:
    """Find candidates with a connection whose statements all see one state.

    :param cap: candidates that are looked at in all; negative for no bound, and 0 is 1
    :param strategy: in which order they are looked at
    :param limit: bounds the work
    :param rng: draws the trees that are tried first and shuffles what is found
    :param release: is called if the connection is not needed any more while the search goes on
    """
    bound, sharing_id = snapshot.lookup(conn, query)
    capped = None if cap < 0 else max(cap, 1)
    source = snapshot.Source(conn, bound, sharing_id, rng)
    wanted = min((n for n in (capped, query.limit) if n is not None), default=None)
    if rng and capped is None:
        strategy = ordering.BREADTH_FIRST  # a sample of many trees, not of the first ones
    if wanted is None:
        strategy = ordering.DEPTH_FIRST  # all are wanted: what takes no memory will do
    walk = _Walk(
        source,
        # Below the cap the search may leave out what old clients do not understand.
        solver.Task.of(bound, one_per_tree=not query.nested and capped is None),
        limit or SearchLimit(),
        wanted=wanted,
        in_turns=strategy == ordering.BREADTH_FIRST,
        rng=rng,
        release=release,
    )
    candidates = ordering.take(
        ordering.STRATEGIES[strategy](walk.streams()),
        cap=capped,
        keep=None if query.nested or capped is None else walk.one_provider_a_tree,
        limit=query.limit,
        rng=rng,
    )
    if walk.limit.incomplete:
        LOG.warning(
            'The search for allocation candidates was ended after [placement] '
            'max_candidate_search_steps: %d candidates are returned, there may be more.',
            len(candidates),
        )
    if walk.crowded:
        LOG.warning(
            'The search for allocation candidates left out provider trees in which it is long, '
            'because there are too many of them: %d candidates are returned, there may be more.',
            len(candidates),
        )
    return _answer(source, walk, query.nested, candidates)


class _Walk:
    """The anchors of a search, page by page, as far as the caller pulls.

    Every tree gets a turn. A tree that uses up its turn without a candidate is set aside, and
    comes back when all other trees had theirs, without a connection to the database. So a tree
    in which the search is long does not hide a tree in which it is short.
    """

    def __init__(
        self,
        source: snapshot.Source,
        task: solver.Task,
        limit: SearchLimit,
        wanted: int | None,
        in_turns: bool,
        rng: random.Random | None,
        release: Callable[[], None],
    ):
        """:param in_turns: whether trees may still have candidates when the last page is read"""
        self.task = task
        self.limit = limit
        self.wanted = wanted
        # The anchors that gave candidates, and all providers that serve them.
        self.anchors: dict[int, model.Anchor] = {}
        self.providers: dict[int, model.Provider] = {}
        self._source = source
        self._in_turns = in_turns
        self._rng = rng
        self._release = release
        self._found = 0
        self._seen: set[model.Chosen] = set()
        # Steps until the next page has to be read.
        self._page_left = PAGE_STEPS
        # The anchors that are or were set aside, and how many options they may have.
        self._aside: dict[int, model.Anchor] = {}
        self._options_aside = 0
        # Whether a tree was given up because too many are set aside.
        self.crowded = False

    def streams(self) -> Iterator[Iterator[model.Candidate | None]]:
        """One stream of candidates for each anchor; None is a pause."""
        for anchor in self._all_anchors():
            if self.limit.left < 0:
                return
            if not solver.is_plain(self.task, anchor) or self._source.sharing:
                yield self._stream(anchor)
            elif self._count(1) and solver.serves_alone(self.task, anchor):
                # PERF: most trees of most clouds; a stream and its search would take twice as long.
                self._note(anchor)
                self._found += 1
                yield iter((model.Candidate(anchor.root.id, solver.alone(self.task, anchor)),))
        self._page_left = 0
        if self._aside or self._in_turns:
            self._source.read_ahead([*self.anchors.values(), *self._aside.values()])
            self._release()

    def _stream(self, anchor: model.Anchor) -> Iterator[model.Candidate | None]:
        if self._page_left < 0 and self._set_aside(anchor):
            yield None
        turn = FIRST_TURN + len(anchor.tree) * len(self.task.slots)
        steps = Steps(min(turn, self.limit.left))
        root_id = anchor.root.id
        counted = 0
        fruitful = False
        # PERF: counting once a turn spares 1,000 small trees a millisecond (2026-11).
        for chosen in self._solutions(anchor, steps):
            if chosen is not None:
                if not fruitful:
                    self._note(anchor)
                    fruitful = True
                self._found += 1
                # Trees that take turns may never come to the end of one.
                if self._in_turns:
                    enough = self._count(steps.used - counted)
                    counted = steps.used
                    if not enough:
                        return
                yield model.Candidate(root_id, chosen)
                continue
            if not self._count(steps.used - counted):
                return
            counted = steps.used
            if not (fruitful and self._page_left > 0):
                if self._set_aside(anchor):
                    yield None
                    turn *= TURN_GROWTH
                elif self.limit.finite:
                    self.crowded = True
                    return
            fruitful = False
            steps.pause_at = steps.used + min(turn, self.limit.left)
        self._count(steps.used - counted)

    def _count(self, steps: int) -> bool:
        """Take steps from the page and the request; return whether the request had as many."""
        self._page_left -= steps
        return self.limit.spend(steps)

    def _note(self, anchor: model.Anchor) -> None:
        """Note an anchor that gave a candidate, and all providers that may serve it."""
        self.anchors[anchor.root.id] = anchor
        for provider in (*anchor.tree, *anchor.lenders):
            self.providers[provider.id] = provider

    def _solutions(self, anchor: model.Anchor, steps: Steps) -> Iterable[model.Chosen | None]:
        found = solver.solve(self.task, anchor, steps, self._rng)
        if self._source.sharing:
            return ordering.unseen(found, self._source.sharing, self._seen)
        return found

    def _set_aside(self, anchor: model.Anchor) -> bool:
        """Note that an anchor pauses; return False if too many are set aside."""
        if anchor.root.id in self._aside:
            return True
        kinds = len(self.task.loose) + len(self.task.granular)
        options = kinds * (len(anchor.tree) + len(anchor.lenders)) + len(anchor.kin)
        if self._options_aside + options > MOST_SET_ASIDE:
            return False
        self._aside[anchor.root.id] = anchor
        self._options_aside += options
        return True

    def _all_anchors(self) -> Iterator[model.Anchor]:
        """All anchors, page by page.

        The first pages are read without asking the database who fits. When that was not worth
        it, because most trees gave nothing, it is asked from there on.
        """
        size = FIRST_PAGE if self.wanted is None else min(self.wanted + 3, FIRST_PAGE)
        while True:
            page = self._source.next_page(size)
            found, fitting, self._page_left = self._found, len(self.anchors), PAGE_STEPS
            yield from self._in_some_order(page.anchors)
            if not page.more:
                return
            found, fitting = self._found - found, len(self.anchors) - fitting
            if not self._source.strict and fitting * 2 < len(page.anchors):
                apart = self._source.be_strict(page.anchors)
                yield from self._in_some_order(apart)
            size = self._next_size(size, found, fitting, len(page.anchors))

    def _in_some_order(self, anchors: tuple[model.Anchor, ...]) -> Iterable[model.Anchor]:
        return self._rng.sample(anchors, len(anchors)) if self._rng else anchors

    def _next_size(self, size: int, found: int, fitting: int, trees: int) -> int:
        """How many trees to read next, by what those of the last page gave and took."""
        # As many as can be searched before the next page is due, if they are like these.
        most = min(LARGEST_PAGE, PAGE_STEPS * trees // max(PAGE_STEPS - self._page_left, 1))
        if self.wanted is None:
            return max(FIRST_PAGE, min(size * GROWTH, most))
        # With a tenth more than needed one page more is often spared.
        each = max(found / fitting, 1.0) if fitting else 1.0
        missing = (self.wanted - self._found) / each * 1.1 + 1
        return max(FIRST_PAGE, min(int(missing), most))

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
