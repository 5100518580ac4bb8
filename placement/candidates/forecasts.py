"""Predicts what a search finds first, from an earlier search for the same query.

A search looks up the ids of the names in its query, and then reads a page of trees that satisfy
conditions on these ids. With a forecast of the ids, one statement does both (see `beginning`). If a
single page has enough trees, this statement is the whole search, which then needs no transaction.

A forecast can be wrong, because names, trees and usage change. A wrong forecast costs time, but the
response is correct: the ids are looked up in each search, and a search that needs more than the
forecast page reads it. This module keeps no data of a response.
"""

from dataclasses import dataclass

from placement.candidates import facts, model, paging

# The maximum number of forecasts, and the maximum number of names and groups of their queries. They
# limit the memory to a few megabytes.
_MOST = 512
_MOST_NAMES = 64
# After so many consecutive failures, searches for the query read their pages in a transaction.
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a search will probably find."""

    found: facts.Found
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
    names = sum(map(len, (query.classes, query.traits, query.aggregates, query.in_trees)))
    if names + len(query.groups) > _MOST_NAMES:
        return
    if len(_forecasts) >= _MOST and key not in _forecasts:
        _forecasts.clear()
    _forecasts[key] = forecast


def clear() -> None:
    """Forget all forecasts."""
    _forecasts.clear()
