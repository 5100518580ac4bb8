"""Searches provider trees page by page, each for a limited number of steps at a time.

An *anchor* is a provider tree together with the sharing providers available to it. Each anchor is
searched in turns of limited length. If an anchor yields no candidate in its turn, it is postponed:
its search continues after all other anchors have had their first turn. So an anchor that takes long
to search does not delay the candidates of other anchors. The database connection is closed before
the searches of postponed anchors continue.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
import logging
import random

from placement import telemetry
from placement.candidates import model, paging, solver, summaries
from placement.candidates.budget import PAUSE, Budget, Pause, SearchLimit
from placement.candidates.selection import is_new

LOG = logging.getLogger(__name__)

# The search steps of the first turn of an anchor. One more step is added for each pair of a slot
# and a provider of the anchor.
FIRST_TURN = 1_000
# After an anchor was postponed, its next turn is this many times as long.
TURN_GROWTH = 4
# Postponed anchors keep the eligible providers of each kind of slot in memory. This is the maximum
# number of (kind of slot, provider) pairs, summed over all postponed anchors. A slot also counts as
# some pairs, because each slot has a generator. An anchor that would exceed this number is not
# postponed. If the request has a search limit, the search of this anchor ends after its turn.
# Otherwise, the search continues immediately with its next turn.
MAX_POSTPONED_OPTIONS = 400_000
_PAIRS_PER_SLOT = 8
# A candidate larger than this number of bytes costs one more search step for each 8 bytes, because
# `max_candidates_response_size` does not apply to the first candidate of each tree.
_LARGE_CANDIDATE = 1024


class TreeSearch:
    """Searches all trees page by page, until the caller stops requesting candidates."""

    def __init__(
        self,
        cursor: paging.Cursor,
        prepared: solver.PreparedQuery,
        limit: SearchLimit,
        in_turns: bool,
        rng: random.Random | None,
        candidate_size: int = 0,
    ) -> None:
        """Prepare a search.

        :param candidate_size: the size of a candidate in the response, in bytes
        :param in_turns: whether the caller takes one candidate from each anchor in turn
            (breadth-first). In this case, the searches of some anchors may be unfinished when the
            last page has been read
        """
        self.found = summaries.FoundProviders()
        self.prepared = prepared
        self._cursor = cursor
        # The cursor adds ids to this set whenever it reads sharing providers.
        self._sharing_ids = cursor.sharing_providers.ids
        self._limit = limit
        self._in_turns = in_turns
        self._rng = rng
        self._candidate_size = candidate_size
        # The search steps charged for the size of each candidate.
        self._size_cost = max(candidate_size - _LARGE_CANDIDATE, 0) // 8
        # The counts of all pages so far.
        self.pages: list[paging.PageCounts] = []
        # Whether the search ended because it needs statements, and its connection is closed.
        self.needs_connection = False
        # The counts of the current page, and the steps to spend on it before the next page is read.
        # After the last page, nothing is left to spend.
        self._counts, self._page_steps = paging.PageCounts(), 0
        # All bindings so far that use only sharing providers.
        self._seen: set[model.Binding] = set()
        self._postponed: dict[int, model.Anchor] = {}
        self._postponed_options = 0
        # The budget of the anchor that the search processes.
        self._budget = Budget()
        # Whether the search of a tree ended early because too many trees were postponed.
        self._trees_left_out = False

    def streams(
        self,
        read_names: Callable[[Iterable[model.Anchor]], bool],
        disconnect: Callable[[], None],
    ) -> Generator[Iterator[model.Candidate | Pause], None, bool]:
        """Yield one stream of candidates for each anchor.

        A stream yields `PAUSE` in place of a candidate when the anchor is postponed.

        :param read_names: called after the last page, if the search continues, to read the names
            for the provider summaries. It returns False if that needs a connection
        :param disconnect: called after `read_names`. The search executes no more statements then
        :returns: whether the streams may continue; False if the search needs a connection
        """
        for anchor in self._anchors():
            if self._limit.exceeded:
                return True
            self._counts.anchors += 1
            # PERF: in most deployments, most trees have only one provider, perhaps with one sharing
            # provider. With `_stream` and the solver, their search would take twice as long.
            found = solver.without_search(self.prepared, anchor)
            if found is None:
                yield self._stream(anchor)
                continue
            binding, steps = found
            if binding is None:
                self._spend(steps)
            elif self._spend(steps + self._size_cost) and self._is_new(binding):
                self._counts.candidates += 1
                self._counts.fitting_anchors += self.found.add(anchor)  # adds 1 if it is new
                yield iter((model.Candidate(anchor.root.id, binding),))
        if not self.needs_connection and (self._postponed or self._in_turns):
            anchors = [*self.found.anchors.values(), *self._postponed.values()]
            self.needs_connection = not read_names(anchors)
            disconnect()
        return not self.needs_connection

    def _anchors(self) -> Iterator[model.Anchor]:
        while page := self._cursor.next_page(self.pages):
            self._counts, self._page_steps = paging.PageCounts(), page.steps
            self.pages.append(self._counts)
            yield from page.anchors
        self.needs_connection = self._cursor.needs_connection
        self._counts, self._page_steps = paging.PageCounts(), 0

    def _stream(self, anchor: model.Anchor) -> Iterator[model.Candidate | Pause]:
        """Yield the candidates of an anchor, and `PAUSE` each time the anchor is postponed."""
        if self._counts.steps > self._page_steps and self._postpone(anchor):
            yield PAUSE
        root_id = anchor.root.id
        length = FIRST_TURN + len(self.prepared.slots) * solver.provider_count(anchor)
        budget = self._budget = Budget(min(length, self._limit.left))
        # Whether the anchor has yielded a candidate in the current turn.
        productive = False
        # PERF: in depth-first order, the limit is reduced only at the end of each turn, which saves
        # 1 ms for 1,000 small trees (2026-11). In breadth-first order, it is reduced for each
        # candidate, because the caller may stop before the end of a turn.
        bindings = solver.solve(self.prepared, anchor, budget, self._rng)
        for binding in filter(self._is_new, bindings) if self._sharing_ids else bindings:
            if binding is PAUSE:
                if not self._spend(budget.new_steps()):
                    return
                if not productive or self._counts.steps >= self._page_steps:
                    if self._postpone(anchor):
                        yield PAUSE
                        length *= TURN_GROWTH
                    elif self._limit.finite:
                        self._trees_left_out = True
                        return
                productive = False
                budget.grant(min(length, self._limit.left))
                self._budget = budget
                continue
            if not self._accepts(anchor, productive):
                break
            productive = True
            budget.spend(self._size_cost)
            self._counts.candidates += 1
            if self._in_turns and not self._spend(budget.new_steps()):
                return
            yield model.Candidate(root_id, binding)
        self._spend(budget.new_steps())

    def _accepts(self, anchor: model.Anchor, productive: bool) -> bool:
        """Whether the response may have one more candidate of the anchor.

        The first candidate of each anchor is always accepted.

        :param productive: whether the anchor has yielded a candidate in the current turn
        """
        if not productive and self.found.add(anchor):
            self._counts.fitting_anchors += 1
            return True
        self._limit.size_left -= self._candidate_size
        return self._limit.size_left >= 0

    def _spend(self, steps: int) -> bool:
        """Count steps of the current page and of the request.

        :returns: False if the search limit is exceeded
        """
        self._counts.steps += steps
        return self._limit.spend(steps)

    def _is_new(self, binding: model.Binding | Pause) -> bool:
        """Whether no other anchor has yielded this binding; also true for a pause of the search."""
        if binding is PAUSE or not self._sharing_ids:
            return True
        return is_new(binding, self._sharing_ids, self._seen)

    def _postpone(self, anchor: model.Anchor) -> bool:
        """Postpone an anchor.

        :returns: False if too many anchors are postponed already
        """
        if anchor.root.id in self._postponed:
            return True
        kinds = len(self.prepared.unsuffixed) + len(self.prepared.suffixed)
        options = kinds * solver.provider_count(anchor) + len(anchor.sharing_trees)
        options += len(self.prepared.slots) * _PAIRS_PER_SLOT
        if self._postponed_options + options > MAX_POSTPONED_OPTIONS:
            return False
        self._postponed[anchor.root.id] = anchor
        self._postponed_options += options
        return True

    def report(self, count: int) -> None:
        """Update the metrics, and log a warning if the search ended early.

        If the search ended early, candidates may be missing.

        :param count: the number of returned candidates
        """
        limit = self._limit
        was_cut = limit.exceeded or limit.size_exceeded or self._trees_left_out
        # The caller may have stopped in the middle of a turn: the limit does not include its steps.
        telemetry.searched(count, limit.used + self._budget.new_steps(), was_cut)
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
        if self._trees_left_out:
            LOG.warning(
                'The search for allocation candidates left out provider trees, because too many '
                'trees take long to search. Placement returns %d candidates; more may exist.',
                count,
            )
