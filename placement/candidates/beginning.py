"""Reads what each search needs first: the ids of the names in its query, and usually a first page.

Without a forecast, the statement of the first page depends on the ids, so the ids are read alone.
With a forecast of the ids (see `forecasts`), one statement reads the ids and the page. If the ids
differ from the forecast, the page is discarded.
"""

from dataclasses import dataclass
import functools
from typing import Any

import sqlalchemy as sa

from placement.candidates import (
    facts,
    model,
    name_statements,
    page_order,
    page_reader,
    page_statements,
    paging,
    request,
    statements,
)
from placement.candidates import names as known_names
from placement.candidates.forecasts import Forecast
from placement.candidates.names import Names
from placement.candidates.statements import Selection


@dataclass(frozen=True, slots=True)
class Beginning:
    """The data with which a search begins."""

    names: Names
    found: facts.Found
    # The query with ids.
    query: model.Query[int]
    # The first page; None if it was not read yet.
    page: page_reader.FirstPage | None = None


def begin(
    conn: sa.Connection,
    query: model.Query[str],
    forecast: Forecast | None = None,
) -> Beginning:
    """Read the ids of a query and, if there is a forecast, the first page.

    :raises exception.UnknownTraits: if a trait does not exist
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    """
    names = Names()
    if forecast is None:
        found = facts.look_up(conn, query, names)
        return Beginning(names, found, request.with_ids(query, found.ids))
    page = forecast.page or paging.OnlyPage(paging.FIRST_PAGE)
    kinds, parameters = name_statements.kinds_of(query, known_names.expected())
    parameters |= page_order.first_parameters(page.size)
    if page.aggregates:
        sharing_id = forecast.found.sharing_id
        parameters |= {'sharing_id': sharing_id, 'aggregates': sorted(page.aggregates)}
    statement = _statement(forecast, kinds, with_sharing=bool(page.aggregates))
    rows = conn.execute(statement, parameters).all()
    found = facts.found_in(
        conn, query, [(kind, text) for id_, kind, *_, text in rows if id_ is None], names
    )
    if found != forecast.found:
        return Beginning(names, found, request.with_ids(query, found.ids))
    providers = facts.providers_of([row for row in rows if row[0] is not None])
    first = page_reader.FirstPage(page.size, providers, page.aggregates)
    return Beginning(names, found, forecast.query, first)


def can_forecast(beginning: Beginning) -> bool:
    """Whether the statement of the first page depends only on the query and on its ids.

    If sharing providers exist, it also depends on those in the trees of in_tree parameters.
    """
    return beginning.found.sharing_id is None or not beginning.query.in_trees


def _statement(
    forecast: Forecast, kinds: tuple[str, ...], with_sharing: bool
) -> sa.CompoundSelect[Any]:
    """Return a statement that reads the first page and looks up names of these kinds.

    The rows of the look-up have NULL as their first column.

    :param with_sharing: whether the page also has the trees of sharing providers
    """
    selection = Selection.NEXT
    paged = page_statements.PagedQuery(
        query=forecast.query,
        slots=model.slots_of(forecast.query),
        has_sharing=forecast.found.sharing_id is not None,
        in_tree_aggregates={},
    )
    roots = page_statements.lenient_roots(paged, selection)
    if roots is statements.plain_roots(selection):
        return _plain_statement(paged.with_aggregates, kinds, with_sharing)
    return _combined(roots, paged.with_aggregates, kinds, with_sharing)


@functools.cache
def _plain_statement(
    with_aggregates: bool, kinds: tuple[str, ...], with_sharing: bool
) -> sa.CompoundSelect[Any]:
    # PERF: most queries have no conditions on the root, and their statement is built only once.
    roots = statements.plain_roots(Selection.NEXT)
    return _combined(roots, with_aggregates, kinds, with_sharing)


def _combined(
    roots: sa.Select[Any], with_aggregates: bool, kinds: tuple[str, ...], with_sharing: bool
) -> sa.CompoundSelect[Any]:
    of_page = statements.with_sharing_providers(roots) if with_sharing else roots
    # The first part of a UNION determines the types of the columns.
    return sa.union_all(statements.page(of_page, with_aggregates), *_rows_of_look_up(kinds))


@functools.cache
def _rows_of_look_up(kinds: tuple[str, ...]) -> tuple[sa.Select[Any], ...]:
    """Return the parts of the look-up, with as many columns as the statement of a page."""
    nulls = [sa.null() for _ in range(4)]
    rows = []
    for part in name_statements.selects(kinds):
        kind, text = part.selected_columns
        rows.append(
            part.with_only_columns(sa.null(), kind, *nulls, text, maintain_column_froms=True)
        )
    return tuple(rows)
