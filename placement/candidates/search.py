"""Runs a search: returns the candidates and provider summaries for a query.

`selection` takes the candidates one by one from `_TreeSearch`, which requests pages of provider
trees from `pages`, and candidates of a tree from `solver`. Everything is lazy: no page is read
before `selection` takes a candidate. All statements read the same snapshot of the database: the ids
of names, the pages, and the names for the summaries.

An *anchor* is a provider tree together with the sharing providers available to it. If an anchor
yields no candidate in its share of the search steps, its search is *cut*, so that an anchor that
takes long to search does not delay the candidates of other anchors. After the last page, the
anchors that were cut are searched again, with more steps. So the result is complete unless the
request reaches its limit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import functools
import itertools
import logging
import random

import sqlalchemy as sa

from placement import telemetry
from placement.candidates import model, names, pages, render, request, selection, solver
from placement.candidates.selection import Budget
from placement.db import engine

LOG = logging.getLogger(__name__)

# The search steps of an anchor until its next candidate, when it is searched for the first time.
FIRST_SHARE = 2_000
# When anchors are searched again, the share of each is this many times as large.
GROWTH = 4
# In its first search, an anchor with many candidates uses little more than this part of the steps
# that the request may still use.
_FIRST_PART = 1 / 2
# A candidate larger than this number of bytes costs one more search step for each 8 bytes, because
# `max_candidates_response_size` does not apply to the first candidate of each tree.
_LARGE_CANDIDATE = 1024


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
    rng: random.Random | None = None,
) -> render.SearchResult:
    """Return the allocation candidates for a query. The statements use the given connection.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param rng: randomizes the order of the search and of the candidates; None for a fixed order
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    :raises exception.UnknownTraits: if a trait does not exist
    """
    ids = names.look_up(conn, query)
    query_ids = request.with_ids(query, ids)
    cap = options.cap
    target = _target(query, options)
    reader = pages.Reader(conn, query_ids, ids.sharing_id)
    budget = Budget(options.max_steps, options.max_size)
    trees = _TreeSearch(
        reader,
        # Candidates that use several providers of one tree are not returned before microversion
        # 1.29, but they count towards the cap. So with a cap, they are generated and removed later.
        model.PreparedQuery.of(query_ids, one_per_tree=not query.nested and cap is None),
        budget,
        target,
        rng,
        candidate_size=selection.candidate_size(query),
    )
    for_old_clients = functools.partial(selection.uses_one_provider_per_tree, anchors=trees.anchors)
    candidates = selection.select(
        trees.candidates(_strategy(options.strategy, cap, target, rng)),
        cap=cap,
        keep=None if query.nested or cap is None else for_old_clients,
        limit=query.limit,
        rng=rng,
    )
    slots = trees.prepared.slots
    found = {p.id: p for anchor in trees.anchors.values() for p in anchor.providers}
    providers = [found[id_] for id_ in _ids_with_resources(slots, candidates)]
    if query.nested:
        providers = _of_whole_trees(providers, trees.anchors, reader.sharing.trees)
    class_ids = frozenset().union(*[provider.inventories for provider in providers])
    trait_ids = frozenset().union(*{provider.traits for provider in providers})
    class_names, trait_names = names.of_ids(conn, class_ids, trait_ids)
    trees.report(len(candidates))
    return render.SearchResult(
        slots, candidates, found, providers, class_names, trait_names, is_cut=budget.is_cut
    )


def _target(query: model.Query[str], options: Options) -> int | None:
    """Return the number of candidates to find; None for all."""
    return min((n for n in (options.cap, query.limit) if n is not None), default=None)


def _strategy(strategy: str, cap: int | None, target: int | None, rng: random.Random | None) -> str:
    if target is None:
        return selection.DEPTH_FIRST  # for all candidates, depth-first needs the least memory
    if rng and cap is None:
        return selection.BREADTH_FIRST  # depth-first could take all from a few trees
    return strategy


class _TreeSearch:
    """Searches all trees page by page, until the caller stops requesting candidates."""

    def __init__(
        self,
        reader: pages.Reader,
        prepared: model.PreparedQuery,
        budget: Budget,
        target: int | None,
        rng: random.Random | None,
        candidate_size: int,
    ) -> None:
        """Prepare a search.

        :param target: the number of candidates to find; None for all
        :param candidate_size: the size of a candidate in the response, in bytes
        """
        # Root id -> anchor, for all anchors that have a candidate.
        self.anchors: dict[int, model.Anchor] = {}
        self.prepared = prepared
        self._pages = pages.pages(reader, target, self._counts, rng)
        # The reader adds ids to this set whenever it reads sharing providers.
        self._sharing_ids = reader.sharing.ids
        self._budget = budget
        self._rng = rng
        self._candidate_size = candidate_size
        # The search steps charged for the size of each candidate.
        self._size_cost = max(candidate_size - _LARGE_CANDIDATE, 0) // 8
        # The number of candidates so far.
        self._count = 0
        # All bindings so far that use only sharing providers.
        self._seen: set[model.Binding] = set()
        # The anchors that were cut, each with the bindings that it has yielded.
        self._cut: list[tuple[model.Anchor, set[model.Binding]]] = []

    def _counts(self) -> pages.Counts:
        return pages.Counts(self._budget.used, self._count, len(self.anchors))

    def candidates(self, strategy: str) -> Iterator[model.Candidate]:
        """Yield the candidates of all trees.

        :param strategy: the order of the candidates, a key of `selection.STRATEGIES`
        """
        in_order = selection.STRATEGIES[strategy]
        yield from in_order(self._streams())
        share = FIRST_SHARE
        while self._cut and not self._budget.is_exceeded:
            cut, self._cut = self._cut, []
            share *= GROWTH
            yield from in_order(
                self._stream(anchor, self._solve(anchor), share, 1, known) for anchor, known in cut
            )

    def _streams(self) -> Iterator[Iterator[model.Candidate]]:
        """Yield one stream of candidates for each anchor."""
        for anchor in itertools.chain.from_iterable(self._pages):
            if self._budget.is_exceeded:
                return
            found = self._solve(anchor)
            if isinstance(found, tuple):
                # PERF: in most deployments, most trees have only one provider. With `_stream`, a
                # search for 1,000 candidates would take 1.05 times as long (2026-11).
                new = (one for one in found if self._is_new(one) and self._accepts(anchor))
                yield iter([model.Candidate(anchor.root.id, binding) for binding in new])
            else:
                yield self._stream(anchor, found, FIRST_SHARE, _FIRST_PART, set())

    def _solve(self, anchor: model.Anchor) -> Iterable[model.Binding]:
        return solver.solve(self.prepared, anchor, self._budget, self._rng)

    def _stream(
        self,
        anchor: model.Anchor,
        bindings: Iterable[model.Binding],
        share: int,
        part: float,
        known: set[model.Binding],
    ) -> Iterator[model.Candidate]:
        """Yield the candidates of an anchor, until it spends its share without a candidate.

        :param part: the part of the steps of the request that the search may use altogether
        :param known: the bindings that the anchor has yielded before; updated in place
        """
        budget = self._budget
        end = max(int(budget.left * (1 - part)) - FIRST_SHARE, 0)
        budget.grant(share, end)
        for binding in bindings:
            if binding not in known:
                if not self._is_new(binding):
                    continue
                if not self._accepts(anchor):
                    return
                known.add(binding)
                yield model.Candidate(anchor.root.id, binding)
            budget.grant(share, end)
        if budget.is_spent and not budget.is_exceeded:
            self._cut.append((anchor, known))

    def _is_new(self, binding: model.Binding) -> bool:
        """Whether no other anchor has yielded this binding."""
        return not self._sharing_ids or selection.is_new(binding, self._sharing_ids, self._seen)

    def _accepts(self, anchor: model.Anchor) -> bool:
        """Whether the response may have one more candidate of the anchor.

        The size of the first candidate of each anchor does not count.
        """
        budget = self._budget
        budget.left -= self._size_cost
        if budget.is_exceeded:
            return False
        if anchor.root.id in self.anchors:
            budget.size_left -= self._candidate_size
            if budget.is_size_exceeded:
                return False
        self.anchors[anchor.root.id] = anchor
        self._count += 1
        return True

    def report(self, count: int) -> None:
        """Update the metrics, and log a warning if the search ended early.

        If the search ended early, candidates may be missing.

        :param count: the number of returned candidates
        """
        budget = self._budget
        telemetry.CANDIDATES_RETURNED.observe(count)
        telemetry.SEARCH_STEPS.observe(budget.used)
        if budget.is_cut:
            telemetry.SEARCHES_CUT.add(1)
        if budget.is_size_exceeded:
            LOG.warning(
                'The response to a request for allocation candidates reached the limit [placement] '
                'max_candidates_response_size. Placement returns %d candidates; more exist.',
                count,
            )
        if budget.is_exceeded:
            LOG.warning(
                'The search for allocation candidates reached the limit [placement] '
                'max_candidate_search_steps. Placement returns %d candidates; more may exist.',
                count,
            )


def _of_whole_trees(
    providers: Iterable[model.Provider],
    anchors: Mapping[int, model.Anchor],
    sharing_trees: Mapping[int, Sequence[model.Provider]],
) -> list[model.Provider]:
    """Return all providers of the trees of these providers, which have a summary since 1.29.

    :param anchors: root id -> anchor, for all anchors that have a candidate
    :param sharing_trees: root id -> the providers of its tree, for the trees of sharing providers
    """
    # The tree of a sharing provider can have no candidate of its own.
    trees = (
        anchors[root_id].tree if root_id in anchors else sharing_trees[root_id]
        for root_id in {provider.root_id for provider in providers}
    )
    return [provider for tree in trees for provider in tree]


def _ids_with_resources(
    slots: Sequence[model.Slot], candidates: Iterable[model.Candidate]
) -> Collection[int]:
    """Return the ids of the providers from which a candidate allocates, without duplicates."""
    numbers = [number for number, slot in enumerate(slots) if slot.amounts]
    return dict.fromkeys(binding[number] for _, binding in candidates for number in numbers)
