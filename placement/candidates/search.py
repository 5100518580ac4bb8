"""Runs a search: returns the candidates and provider summaries for a query.

The data passes through these modules:

    request -> forecasts -> tree_search -> ordering -> candidate_limits -> summaries -> render

`tree_search` requests pages of provider trees from `paging`, and candidates of a tree from
`solver`.
"""

from collections.abc import Callable
import dataclasses
from dataclasses import dataclass
import functools
import random

import sqlalchemy as sa

from placement.candidates import (
    candidate_limits,
    forecasts,
    model,
    ordering,
    paging,
    render,
    solver,
    summaries,
)
from placement.candidates.forecasts import FirstReads, Forecast
from placement.candidates.search_step_limit import SearchLimit
from placement.candidates.tree_search import TreeSearch
from placement.db import engine


@dataclass(frozen=True, slots=True)
class Options:
    """The configuration options in [placement] that affect a search."""

    # max_allocation_candidates. A negative value means no maximum, and 0 means 1.
    max_candidates: int = -1
    # allocation_candidates_generation_strategy
    strategy: str = ordering.DEPTH_FIRST
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
    if options.randomize:
        return engine.read_snapshot(
            lambda conn, disconnect: search_with(
                conn,
                query,
                options,
                rng=random.Random(),  # noqa: S311 - the order is not a secret
                disconnect=disconnect,
            )
        )
    forecast = forecasts.of((query, options.cap, options.strategy))
    if forecast and forecast.at_once:
        try:
            return engine.read_one(functools.partial(_search_at_once, query, options, forecast))
        except _NeedsTransactionError:
            forecast = dataclasses.replace(forecast, failures=forecast.failures + 1)
    return engine.read_snapshot(functools.partial(_search_in_transaction, query, options, forecast))


def search_with(
    conn: sa.Connection,
    query: model.Query[str],
    options: Options,
    limit: SearchLimit | None = None,
    rng: random.Random | None = None,
    disconnect: Callable[[], None] = lambda: None,
) -> render.SearchResult:
    """Return the allocation candidates for a query. The statements use the given connection.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param limit: the limits of the request; None to use those of `options`
    :param rng: randomizes the order of the search and of the candidates; None for a fixed order
    :param disconnect: called after the last statement if the search continues without `conn`
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    :raises exception.UnknownTraits: if a trait does not exist
    """
    start = forecasts.read_first(conn, query)
    return _search(conn, disconnect, query, options, start, limit, rng)[0]


class _NeedsTransactionError(Exception):
    """A search needs more than one statement."""


def _search_at_once(
    query: model.Query[str],
    options: Options,
    forecast: Forecast,
    conn: sa.Connection,
    disconnect: Callable[[], None],
) -> render.SearchResult:
    """Search with a single statement.

    :raises _NeedsTransactionError: the search needs another statement
    """
    start = forecasts.read_first(conn, query, forecast)
    disconnect()
    try:
        result, page = _search(conn, disconnect, query, options, start)
    except sa.exc.ResourceClosedError as exc:  # the search used the connection again
        raise _NeedsTransactionError from exc
    _remember(query, options, start, page, failures=0)
    return result


def _search_in_transaction(
    query: model.Query[str],
    options: Options,
    forecast: Forecast | None,
    conn: sa.Connection,
    disconnect: Callable[[], None],
) -> render.SearchResult:
    start = forecasts.read_first(conn, query, forecast)
    result, page = _search(conn, disconnect, query, options, start)
    _remember(query, options, start, page, forecast.failures if forecast else 0)
    return result


def _remember(
    query: model.Query[str],
    options: Options,
    start: FirstReads,
    page: paging.OnlyPage | None,
    failures: int,
) -> None:
    if forecasts.can_forecast(start):
        forecast = Forecast(start.found, start.query, page, failures)
        forecasts.remember((query, options.cap, options.strategy), forecast)


def _search(
    conn: sa.Connection,
    disconnect: Callable[[], None],
    query: model.Query[str],
    options: Options,
    start: FirstReads,
    limit: SearchLimit | None = None,
    rng: random.Random | None = None,
) -> tuple[render.SearchResult, paging.OnlyPage | None]:
    """Return the result of a search, and a first page that would have been enough.

    The page is None if one page is not enough.
    """
    cap = options.cap
    limit = limit or SearchLimit(options.max_steps, options.max_size)
    target = min((n for n in (cap, query.limit) if n is not None), default=None)
    strategy = _strategy(options.strategy, cap, target, rng)
    cursor = paging.Cursor(conn, start.query, start.found.sharing_id, target, rng, start.page)
    trees = TreeSearch(
        cursor,
        # Candidates that use several providers of one tree are not returned before microversion
        # 1.29, but they count towards the cap. So with a cap, they are generated and removed later.
        solver.PreparedQuery.of(start.query, one_per_tree=not query.nested and cap is None),
        limit,
        in_turns=strategy == ordering.BREADTH_FIRST,
        rng=rng,
        candidate_size=candidate_limits.candidate_size(query),
    )
    read_names = functools.partial(
        summaries.read_names, conn, start.names, sharing_trees=cursor.sharing_trees
    )
    for_old_clients = functools.partial(
        candidate_limits.uses_one_provider_per_tree, providers=trees.found.providers
    )
    candidates = candidate_limits.select(
        ordering.STRATEGIES[strategy](trees.streams(read_names, disconnect)),
        cap=cap,
        keep=None if query.nested or cap is None else for_old_clients,
        limit=query.limit,
        rng=rng,
    )
    slots = trees.prepared.slots
    result = render.SearchResult(
        slots=slots,
        candidates=candidates,
        providers=trees.found.providers,
        summaries=summaries.read(
            conn, start.names, trees.found, cursor.sharing_trees, slots, candidates, query.nested
        ),
    )
    trees.report(len(candidates))
    is_complete = not (limit.exceeded or limit.size_exceeded)
    return result, cursor.only_page() if is_complete else None


def _strategy(strategy: str, cap: int | None, target: int | None, rng: random.Random | None) -> str:
    if target is None:
        return ordering.DEPTH_FIRST  # for all candidates, depth-first needs the least memory
    if rng and cap is None:
        return ordering.BREADTH_FIRST  # depth-first could take all from a few trees
    return strategy
