"""What a search reads first: the ids of the names in its query, and usually a first page.

A search looks up the ids of the names in its query, and then reads a page of trees that satisfy
conditions on these ids. With a *forecast* of the ids, from an earlier search for the same query,
one statement does both. If a single page has enough trees, this statement is the whole search,
which then needs no transaction.

A forecast can be wrong, because names, trees and usage change. A wrong forecast costs time, but the
response is correct: the ids are looked up in each search, and if they differ from the forecast, the
page is discarded. A search that needs more than one statement reads the pages that it would read
without a forecast, so that the order of the candidates does not depend on earlier searches. This
module keeps no data of a response.
"""

from dataclasses import dataclass
import functools
from typing import Any

import sqlalchemy as sa

from placement.candidates import (
    model,
    names,
    page_reader,
    page_statements,
    paging,
    request,
    tree_rows,
)
from placement.candidates.names import Found, Names
from placement.candidates.page_statements import RootRange

# The maximum number of forecasts, and the maximum number of names and groups of their queries. They
# limit the memory to a few megabytes.
_MOST = 512
_MOST_NAMES = 64
# After so many consecutive failures, searches for the query read their pages in a transaction.
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a search will probably find."""

    found: Found
    # The query with these ids.
    query: model.Query[int]
    # The first page that is probably enough; None if a search probably needs more than one page, or
    # other statements.
    page: paging.OnlyPage | None
    # The number of consecutive searches that needed another statement although `page` was not None.
    failures: int = 0

    @property
    def at_once(self) -> bool:
        """Whether a search should consist of one statement."""
        return self.page is not None and self.failures < _MOST_FAILURES


# A query, and the maximum number of candidates to generate, with the strategy to do so.
Key = tuple[model.Query[str], int | None, str]

# If there are too many forecasts, all of them are discarded. A search without a forecast takes only
# a little longer, so there is no need to find the forecasts that are used least.
_forecasts: dict[Key, Forecast] = {}


def of(key: Key) -> Forecast | None:
    """Return the forecast for a query."""
    return _forecasts.get(key)


def remember(key: Key, forecast: Forecast) -> None:
    """Replace the forecast for a query, unless the query is too large."""
    query = key[0]
    count = sum(map(len, (query.classes, query.traits, query.aggregates, query.in_trees)))
    if count + len(query.groups) > _MOST_NAMES:
        return
    if len(_forecasts) >= _MOST and key not in _forecasts:
        _forecasts.clear()
    _forecasts[key] = forecast


def forget(key: Key) -> None:
    """Forget the forecast for a query."""
    _forecasts.pop(key, None)


def clear() -> None:
    """Forget all forecasts."""
    _forecasts.clear()


@dataclass(frozen=True, slots=True)
class FirstReads:
    """What a search has read first."""

    names: Names
    found: Found
    # The query with ids.
    query: model.Query[int]
    # The first page; None if it was not read yet.
    page: page_reader.FirstPage | None = None


def read_ids(conn: sa.Connection, query: model.Query[str]) -> FirstReads:
    """Read the ids of a query without a forecast.

    :raises exception.UnknownTraits: if a trait does not exist
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    """
    found_names = Names()
    found = names.look_up(conn, query, found_names)
    return FirstReads(found_names, found, request.with_ids(query, found.ids))


def read_ids_and_page(
    conn: sa.Connection, query: model.Query[str], forecast: Forecast, page: paging.OnlyPage
) -> FirstReads:
    """Read the ids of a query and, if they are those of the forecast, a first page.

    :raises exception.UnknownTraits: if a trait does not exist
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    """
    found_names = Names()
    kinds, parameters = names.to_look_up(query, names.expected())
    parameters |= page_statements.first_parameters(page.size)
    if page.aggregates:
        sharing_id = forecast.found.sharing_id
        parameters |= {'sharing_id': sharing_id, 'aggregates': sorted(page.aggregates)}
    statement = _statement(forecast, kinds, with_sharing=bool(page.aggregates))
    rows = conn.execute(statement, parameters).all()
    of_names = [(kind, text) for id_, kind, *_, text in rows if id_ is None]
    found = names.found_in(conn, query, of_names, found_names)
    if found != forecast.found:
        return FirstReads(found_names, found, request.with_ids(query, found.ids))
    providers = tree_rows.providers_of([row for row in rows if row[0] is not None])
    first = page_reader.FirstPage(page.size, providers, page.aggregates)
    return FirstReads(found_names, found, forecast.query, first)


def can_forecast(reads: FirstReads) -> bool:
    """Whether the statement of the first page depends only on the query and on its ids.

    If sharing providers exist, it also depends on those in the trees of in_tree parameters.
    """
    return reads.found.sharing_id is None or not reads.query.in_trees


def _statement(
    forecast: Forecast, kinds: tuple[str, ...], with_sharing: bool
) -> sa.CompoundSelect[Any]:
    """Return a statement that reads the first page and looks up names of these kinds.

    The rows of the look-up have NULL as their first column.

    :param with_sharing: whether the page also has the trees of sharing providers
    """
    root_range = RootRange.NEXT
    paged = page_statements.PagedQuery(
        query=forecast.query,
        slots=model.slots_of(forecast.query),
        has_sharing=forecast.found.sharing_id is not None,
        in_tree_aggregates={},
    )
    root_select = page_statements.lenient_roots(paged, root_range)
    if root_select is page_statements.plain_roots(root_range):
        return _plain_statement(paged.with_aggregates, kinds, with_sharing)
    return _combined(root_select, paged.with_aggregates, kinds, with_sharing)


@functools.cache
def _plain_statement(
    with_aggregates: bool, kinds: tuple[str, ...], with_sharing: bool
) -> sa.CompoundSelect[Any]:
    # PERF: most queries have no conditions on the root, and their statement is built only once.
    root_select = page_statements.plain_roots(RootRange.NEXT)
    return _combined(root_select, with_aggregates, kinds, with_sharing)


def _combined(
    root_select: sa.Select[Any], with_aggregates: bool, kinds: tuple[str, ...], with_sharing: bool
) -> sa.CompoundSelect[Any]:
    of_page = page_statements.with_sharing_providers(root_select) if with_sharing else root_select
    # The first part of a UNION determines the types of the columns.
    return sa.union_all(
        page_statements.trees_of(of_page, with_aggregates), *_rows_of_look_up(kinds)
    )


@functools.cache
def _rows_of_look_up(kinds: tuple[str, ...]) -> tuple[sa.Select[Any], ...]:
    """Return the parts of the look-up, with as many columns as the statement of a page."""
    nulls = [sa.null() for _ in range(4)]
    rows = []
    for part in names.selects(kinds):
        kind, text = part.selected_columns
        rows.append(
            part.with_only_columns(sa.null(), kind, *nulls, text, maintain_column_froms=True)
        )
    return tuple(rows)
