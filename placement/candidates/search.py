"""Runs a search: returns the candidates and provider summaries for a query.

`selection` takes the candidates one by one from `_TreeSearch`, which requests pages of provider
trees from `paging`, and candidates of a tree from `solver`. `page_reader` executes the statements
of `page_statements`. Everything is lazy: no page is read before `selection` takes a candidate. All
statements read the same snapshot of the database: the ids of names, the pages, and the names for
the summaries.

An *anchor* is a provider tree together with the sharing providers available to it. If an anchor
yields no candidate in its share of the search steps, its search is *cut*, so that an anchor that
takes long to search does not delay the candidates of other anchors. After the last page, the
anchors that were cut are searched again, with more steps. So the result is complete unless the
request reaches its limit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import functools
import logging
import random

import sqlalchemy as sa

from placement import telemetry
from placement.candidates import model, names, paging, render, request, selection, solver
from placement.candidates.budget import Budget, SearchLimit
from placement.db import engine

LOG = logging.getLogger(__name__)

# The search steps of an anchor until its next candidate, when it is searched for the first time.
# One more step is added for each pair of a slot and a provider of the anchor.
FIRST_SHARE = 2_000
# When anchors are searched again, the share of each is this many times as large.
GROWTH = 4
# In its first search, an anchor with many candidates uses little more than this part of the steps
# that the request may still use.
_FIRST_PART = 1 / 2
# A candidate larger than this number of bytes costs one more search step for each 8 bytes, because
# `max_candidates_response_size` does not apply to the first candidate of each tree.
_LARGE_CANDIDATE = 1024

# Root id -> all providers of its tree.
_Trees = Mapping[int, Sequence[model.Provider]]


@dataclass(frozen=True, slots=True)
class Options:
    """The configuration options in [placement] that affect a search."""

    # max_allocation_candidates. A negative value means no maximum, and 0 means 1.
    max_candidates: int = -1
    # allocation_candidates_generation_strategy
    strategy: str = selection.DEPTH_FIRST
    # max_candidate_search_steps. A negative value means no limit.
    max_steps: int = -1
    # max_candidates_response_size, in bytes. A negative value means no limit.
    max_size: int = -1
    # randomize_allocation_candidates
    randomize: bool = False

    @property
    def cap(self) -> int | None:
        """The maximum number of candidates to generate; None for no maximum."""
        return None if self.max_candidates < 0 else max(self.max_candidates, 1)


def allocation_candidates(query: model.Query[str], options: Options) -> render.SearchResult:
    """Return the allocation candidates for a query.

    :raises exception.UnknownResourceClasses: if a resource class does not exist
    :raises exception.UnknownTraits: if a trait does not exist
    """
    rng = random.Random() if options.randomize else None  # noqa: S311 - the order is not a secret
    return engine.read_snapshot(lambda conn: search_with(conn, query, options, rng=rng))


def search_with(
    conn: sa.Connection,
    query: model.Query[str],
    options: Options,
    limit: SearchLimit | None = None,
    rng: random.Random | None = None,
) -> render.SearchResult:
    """Return the allocation candidates for a query. The statements use the given connection.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param limit: the limits of the request; None to use those of `options`
    :param rng: randomizes the order of the search and of the candidates; None for a fixed order
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    :raises exception.UnknownTraits: if a trait does not exist
    """
    found = names.look_up(conn, query)
    query_ids = request.with_ids(query, found.ids)
    cap = options.cap
    target = _target(query, options)
    cursor = paging.Cursor(conn, query_ids, found.sharing_id, target, rng)
    trees = _TreeSearch(
        cursor,
        # Candidates that use several providers of one tree are not returned before microversion
        # 1.29, but they count towards the cap. So with a cap, they are generated and removed later.
        solver.PreparedQuery.of(query_ids, one_per_tree=not query.nested and cap is None),
        limit or SearchLimit(options.max_steps, options.max_size),
        rng=rng,
        candidate_size=selection.candidate_size(query),
    )
    for_old_clients = functools.partial(
        selection.uses_one_provider_per_tree, providers=trees.found.providers
    )
    candidates = selection.select(
        trees.candidates(_strategy(options.strategy, cap, target, rng)),
        cap=cap,
        keep=None if query.nested or cap is None else for_old_clients,
        limit=query.limit,
        rng=rng,
    )
    slots = trees.prepared.slots
    sharing_trees = cursor.sharing_providers.trees
    shown = _summaries(conn, trees.found, sharing_trees, slots, candidates, query.nested)
    trees.report(len(candidates))
    return render.SearchResult(slots, candidates, trees.found.providers, shown)


def _target(query: model.Query[str], options: Options) -> int | None:
    """Return the number of candidates to find; None for all."""
    return min((n for n in (options.cap, query.limit) if n is not None), default=None)


def _strategy(strategy: str, cap: int | None, target: int | None, rng: random.Random | None) -> str:
    if target is None:
        return selection.DEPTH_FIRST  # for all candidates, depth-first needs the least memory
    if rng and cap is None:
        return selection.BREADTH_FIRST  # depth-first could take all from a few trees
    return strategy


@dataclass(slots=True)
class _FoundProviders:
    """The anchors that have a candidate, and the providers that their candidates can use.

    An anchor is a provider tree together with the sharing providers available to it.
    """

    # Root id -> anchor.
    anchors: dict[int, model.Anchor] = field(default_factory=dict)
    # Provider id -> provider, for all providers of these anchors.
    providers: dict[int, model.Provider] = field(default_factory=dict)

    def add(self, anchor: model.Anchor) -> bool:
        """Add an anchor that has a candidate.

        :returns: False if the anchor was added before
        """
        if anchor.root.id in self.anchors:
            return False
        self.anchors[anchor.root.id] = anchor
        for provider in anchor.providers:
            self.providers[provider.id] = provider
        return True


class _TreeSearch:
    """Searches all trees page by page, until the caller stops requesting candidates."""

    def __init__(
        self,
        cursor: paging.Cursor,
        prepared: solver.PreparedQuery,
        limit: SearchLimit,
        rng: random.Random | None,
        candidate_size: int = 0,
    ) -> None:
        """Prepare a search.

        :param candidate_size: the size of a candidate in the response, in bytes
        """
        self.found = _FoundProviders()
        self.prepared = prepared
        self._cursor = cursor
        # The cursor adds ids to this set whenever it reads sharing providers.
        self._sharing_ids = cursor.sharing_providers.ids
        self._limit = limit
        self._rng = rng
        self._candidate_size = candidate_size
        # The search steps charged for the size of each candidate.
        self._size_cost = max(candidate_size - _LARGE_CANDIDATE, 0) // 8
        # The counts of all pages so far, and of the current page.
        self.pages: list[paging.PageCounts] = []
        self._counts = paging.PageCounts()
        # All bindings so far that use only sharing providers.
        self._seen: set[model.Binding] = set()
        # The anchors that were cut, each with the bindings that it has yielded.
        self._cut: list[tuple[model.Anchor, set[model.Binding]]] = []

    def candidates(self, strategy: str) -> Iterator[model.Candidate]:
        """Yield the candidates of all trees.

        :param strategy: the order of the candidates, a key of `selection.STRATEGIES`
        """
        in_order = selection.STRATEGIES[strategy]
        yield from in_order(self._streams())
        share = FIRST_SHARE
        while self._cut and not self._limit.exceeded:
            cut, self._cut = self._cut, []
            share *= GROWTH
            yield from in_order(self._stream(anchor, share, 1, known) for anchor, known in cut)

    def _streams(self) -> Iterator[Iterator[model.Candidate]]:
        """Yield one stream of candidates for each anchor."""
        for anchor in self._anchors():
            if self._limit.exceeded:
                return
            # PERF: in most deployments, most trees have only one provider, perhaps with one sharing
            # provider. With `_stream` and the solver, their search would take twice as long.
            found = solver.without_search(self.prepared, anchor)
            if found is None:
                yield self._stream(anchor, FIRST_SHARE, _FIRST_PART, set())
                continue
            binding, steps = found
            if binding is None:
                self._spend(steps)
            elif self._spend(steps + self._size_cost) and self._is_new(binding):
                self._counts.candidates += 1
                self._counts.fitting_anchors += self.found.add(anchor)  # adds 1 if it is new
                yield iter((model.Candidate(anchor.root.id, binding),))

    def _anchors(self) -> Iterator[model.Anchor]:
        while (anchors := self._cursor.next_page(self.pages)) is not None:
            self._counts = paging.PageCounts()
            self.pages.append(self._counts)
            yield from anchors
        self._counts = paging.PageCounts()

    def _stream(
        self, anchor: model.Anchor, share: int, part: float, known: set[model.Binding]
    ) -> Iterator[model.Candidate]:
        """Yield the candidates of an anchor, until it spends its share without a candidate.

        :param part: the part of the steps of the request that the search may use altogether
        :param known: the bindings that the anchor has yielded before; updated in place
        """
        share += len(self.prepared.slots) * solver.provider_count(anchor)
        end = max(int(self._limit.left * (1 - part)) - FIRST_SHARE, 0)
        budget = Budget(min(share, self._limit.left - end))
        for binding in solver.solve(self.prepared, anchor, budget, self._rng):
            is_known = binding in known
            if not is_known and not self._is_new(binding):
                continue
            if not self._spend(budget.used + self._size_cost):
                return
            budget.renew(min(share, self._limit.left - end))
            if is_known:
                continue
            if not self._accepts(anchor):
                return
            known.add(binding)
            self._counts.candidates += 1
            yield model.Candidate(anchor.root.id, binding)
        if self._spend(budget.used) and budget.left < 0:
            self._cut.append((anchor, known))

    def _accepts(self, anchor: model.Anchor) -> bool:
        """Whether the response may have one more candidate of the anchor.

        The first candidate of each anchor is always accepted.
        """
        if self.found.add(anchor):
            self._counts.fitting_anchors += 1
            return True
        self._limit.size_left -= self._candidate_size
        return not self._limit.size_exceeded

    def _spend(self, steps: int) -> bool:
        """Count steps of the current page and of the request.

        :returns: False if the search limit is exceeded
        """
        self._counts.steps += steps
        return self._limit.spend(steps)

    def _is_new(self, binding: model.Binding) -> bool:
        """Whether no other anchor has yielded this binding."""
        return not self._sharing_ids or selection.is_new(binding, self._sharing_ids, self._seen)

    def report(self, count: int) -> None:
        """Update the metrics, and log a warning if the search ended early.

        If the search ended early, candidates may be missing.

        :param count: the number of returned candidates
        """
        limit = self._limit
        telemetry.CANDIDATES_RETURNED.observe(count)
        telemetry.SEARCH_STEPS.observe(limit.used)
        if limit.exceeded or limit.size_exceeded:
            telemetry.SEARCHES_CUT.add(1)
        if limit.size_exceeded:
            LOG.warning(
                'The response to a request for allocation candidates reached the limit [placement] '
                'max_candidates_response_size. Placement returns %d candidates; more exist.',
                count,
            )
        if limit.exceeded:
            LOG.warning(
                'The search for allocation candidates reached the limit [placement] '
                'max_candidate_search_steps. Placement returns %d candidates; more may exist.',
                count,
            )


def _summaries(
    conn: sa.Connection,
    found: _FoundProviders,
    sharing_trees: _Trees,
    slots: Sequence[model.Slot],
    candidates: Iterable[model.Candidate],
    whole_trees: bool,
) -> render.Summaries:
    """Return the data of the summaries for the candidates of the response.

    :param found: the anchors and providers of all candidates
    :param sharing_trees: the trees of all sharing providers that were read
    :param slots: the slots of the query; a slot is a part that exactly one provider serves
    :param candidates: the candidates of the response
    :param whole_trees: whether all providers of a tree have a summary (microversion 1.29)
    """
    providers = [found.providers[id_] for id_ in _ids_with_resources(slots, candidates)]
    if whole_trees:
        # The tree of a sharing provider can have no candidate of its own.
        trees = (
            found.anchors[root_id].tree if root_id in found.anchors else sharing_trees[root_id]
            for root_id in {provider.root_id for provider in providers}
        )
        providers = [provider for tree in trees for provider in tree]
    class_ids = frozenset().union(*[provider.inventories for provider in providers])
    trait_ids = frozenset().union(*{provider.traits for provider in providers})
    return render.Summaries(providers, *names.of_ids(conn, class_ids, trait_ids))


def _ids_with_resources(
    slots: Sequence[model.Slot], candidates: Iterable[model.Candidate]
) -> Collection[int]:
    """Return the ids of the providers from which a candidate allocates, without duplicates."""
    if all(slot.amounts for slot in slots):
        return dict.fromkeys(id_ for _, binding in candidates for id_ in binding)
    numbers = [number for number, slot in enumerate(slots) if slot.amounts]
    return dict.fromkeys(binding[number] for _, binding in candidates for number in numbers)
