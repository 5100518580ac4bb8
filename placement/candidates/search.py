"""Runs a search: returns the candidates and provider summaries for a query.

The data passes through these modules:

    request -> forecasts -> tree_search -> selection -> summaries -> render

`forecasts` reads the ids of the query, usually together with a first page. `selection` takes the
candidates one by one from `tree_search`, which requests pages of provider trees from `paging`, and
candidates of a tree from `solver`. `page_reader` executes the statements of `page_statements`.
Everything is lazy: no page is read before `selection` takes a candidate.

A search whose forecast promises a sufficient first page closes the connection after the first
statement. If a function then needs another statement, it returns None, and the search begins again
in a snapshot.
"""

from collections.abc import Callable
import dataclasses
from dataclasses import dataclass
import functools
import random

import sqlalchemy as sa

from placement.candidates import (
    forecasts,
    model,
    names,
    paging,
    render,
    selection,
    solver,
    summaries,
)
from placement.candidates.budget import SearchLimit
from placement.candidates.forecasts import FirstReads, Forecast
from placement.candidates.tree_search import TreeSearch
from placement.db import engine


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
        work = functools.partial(_search_and_remember, query, options, forecast, True)
        result = engine.read_single_statement(work)
        if result:
            return result
        forecast = dataclasses.replace(forecast, failures=forecast.failures + 1)
    result = engine.read_snapshot(
        functools.partial(_search_and_remember, query, options, forecast, False)
    )
    assert result is not None
    return result


def forget() -> None:
    """Forget what this process learned from earlier searches."""
    forecasts.clear()
    names.forget()


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
    start = forecasts.read_ids(conn, query)
    found = _search(conn, disconnect, query, options, start, limit, rng)
    assert found is not None  # the connection is open
    return found[0]


def _search_and_remember(
    query: model.Query[str],
    options: Options,
    forecast: Forecast | None,
    at_once: bool,
    conn: sa.Connection,
    disconnect: Callable[[], None],
) -> render.SearchResult | None:
    """Search with the forecast of an earlier search, and remember a forecast for the next one.

    :param forecast: None for the first search for the query
    :param at_once: whether to search with the single statement that reads the first page
    :returns: None if the search needs another statement; only with `at_once`
    """
    key = query, options.cap, options.strategy
    if forecast is None:
        start = forecasts.read_ids(conn, query)
    else:
        only = forecast.page if at_once else None
        page = only or paging.OnlyPage(paging.smallest_page(_target(query, options)))
        start = forecasts.read_ids_and_page(conn, query, forecast, page)
    if at_once:
        if start.page is None:
            return None
        disconnect()
    found = _search(conn, disconnect, query, options, start)
    if found is None:
        return None
    result, only_page = found
    if forecasts.can_forecast(start):
        failures = 0 if at_once or forecast is None else forecast.failures
        forecasts.remember(key, Forecast(start.found, start.query, only_page, failures))
    else:
        forecasts.forget(key)
    return result


def _search(
    conn: sa.Connection,
    disconnect: Callable[[], None],
    query: model.Query[str],
    options: Options,
    start: FirstReads,
    limit: SearchLimit | None = None,
    rng: random.Random | None = None,
) -> tuple[render.SearchResult, paging.OnlyPage | None] | None:
    """Return the result of a search, and a first page that would have been enough.

    :returns: None if the connection is closed and the search needs another statement. The page is
        None if one page is not enough
    """
    cap = options.cap
    limit = limit or SearchLimit(options.max_steps, options.max_size)
    target = _target(query, options)
    strategy = _strategy(options.strategy, cap, target, rng)
    cursor = paging.Cursor(conn, start.query, start.found.sharing_id, target, rng, start.page)
    trees = TreeSearch(
        cursor,
        # Candidates that use several providers of one tree are not returned before microversion
        # 1.29, but they count towards the cap. So with a cap, they are generated and removed later.
        solver.PreparedQuery.of(start.query, one_per_tree=not query.nested and cap is None),
        limit,
        in_turns=strategy == selection.BREADTH_FIRST,
        rng=rng,
        candidate_size=selection.candidate_size(query),
    )
    read_names = functools.partial(
        summaries.read_names, conn, start.names, sharing_trees=cursor.sharing_providers.trees
    )
    for_old_clients = functools.partial(
        selection.uses_one_provider_per_tree, providers=trees.found.providers
    )
    candidates = selection.select(
        selection.STRATEGIES[strategy](trees.streams(read_names, disconnect)),
        cap=cap,
        keep=None if query.nested or cap is None else for_old_clients,
        limit=query.limit,
        rng=rng,
    )
    if trees.needs_connection:
        return None
    slots, found = trees.prepared.slots, trees.found
    sharing_trees = cursor.sharing_providers.trees
    shown = summaries.read(conn, start.names, found, sharing_trees, slots, candidates, query.nested)
    if shown is None:
        return None
    trees.report(len(candidates))
    is_complete = not (limit.exceeded or limit.size_exceeded)
    page = cursor.only_page(trees.pages) if is_complete else None
    return render.SearchResult(slots, candidates, found.providers, shown), page


def _target(query: model.Query[str], options: Options) -> int | None:
    """Return the number of candidates to find; None for all."""
    return min((n for n in (options.cap, query.limit) if n is not None), default=None)


def _strategy(strategy: str, cap: int | None, target: int | None, rng: random.Random | None) -> str:
    if target is None:
        return selection.DEPTH_FIRST  # for all candidates, depth-first needs the least memory
    if rng and cap is None:
        return selection.BREADTH_FIRST  # depth-first could take all from a few trees
    return strategy
