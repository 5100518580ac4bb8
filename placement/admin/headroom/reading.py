"""Reads the provider trees and the names that a report needs."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
from dataclasses import dataclass

import sqlalchemy as sa

from placement import exception
from placement.admin import query_text
from placement.admin.failure import CannotProceedError
from placement.admin.progress import Progress
from placement.candidates import model, names, pages, request
from placement.db.sqlalchemy import models
from placement.microversion import Version

_PROVIDERS = models.resource_providers
_AGGREGATES = models.placement_aggregates


@dataclass(frozen=True, slots=True)
class Cloud:
    """The queries with ids, and the state of the cloud in one snapshot of the database."""

    queries: Sequence[model.Query[int]]
    anchors: Sequence[model.Anchor]
    # The id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has the trait.
    sharing_id: int | None
    # Aggregate id -> UUID.
    aggregates: Mapping[int, str]
    # UUID of a root provider -> name.
    names: Mapping[str, str]


def parse(texts: Sequence[str], version: Version) -> list[model.Query[str]]:
    """Return the queries of the command line.

    :raises CannotProceedError: the API refuses a query
    """
    queries = []
    for number, text in enumerate(texts, 1):
        with refusing(_prefix(number, len(texts))):
            queries.append(query_text.parse(text, version))
    return queries


def _prefix(number: int, count: int) -> str:
    return f'Query {number} is not valid: ' if count > 1 else ''


@contextlib.contextmanager
def refusing(prefix: str) -> Iterator[None]:
    """Raise CannotProceedError for a query that the API refuses.

    :param prefix: what the message begins with
    """
    try:
        yield
    except exception.BadInput as error:
        raise CannotProceedError(f'{prefix}{query_text.refusal(error)}') from error
    except CannotProceedError as error:
        raise CannotProceedError(f'{prefix}{error}') from error


def read(
    conn: sa.Connection,
    queries: Sequence[model.Query[str]],
    progress: Progress,
    with_aggregates: bool,
    with_names: bool,
) -> Cloud:
    """Read all trees once for all queries.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param with_aggregates: whether the UUIDs of aggregates are needed
    :param with_names: whether the names of root providers are needed
    :raises CannotProceedError: a class or trait of a query does not exist
    """
    with_ids, sharing_id = [], None
    for number, query in enumerate(queries, 1):
        with refusing(_prefix(number, len(queries))):
            ids = names.look_up(conn, query)
            with_ids.append(request.with_ids(query, ids))
        sharing_id = ids.sharing_id
    # The pages of a query with same_subtree have all that the other queries need.
    query_of_pages = next((query for query in with_ids if query.same_subtrees), with_ids[0])
    in_any_case = with_aggregates or any(query.aggregates for query in with_ids)
    return Cloud(
        queries=with_ids,
        anchors=anchors(conn, query_of_pages, sharing_id, in_any_case, progress),
        sharing_id=sharing_id,
        aggregates=_aggregates(conn) if with_aggregates else {},
        names=root_names(conn) if with_names else {},
    )


def anchors(
    conn: sa.Connection,
    query: model.Query[int],
    sharing_id: int | None,
    with_aggregates: bool,
    progress: Progress,
) -> list[model.Anchor]:
    """Return all anchors of the cloud (see `pages.all_pages`)."""
    found: list[model.Anchor] = []
    with progress('Reading provider trees') as advance:
        for page in pages.all_pages(conn, query, sharing_id, with_aggregates):
            found += page
            advance(len(page))
    return found


def _aggregates(conn: sa.Connection) -> dict[int, str]:
    return {
        row.id: row.uuid for row in conn.execute(sa.select(_AGGREGATES.c.id, _AGGREGATES.c.uuid))
    }


def root_names(conn: sa.Connection) -> dict[str, str]:
    """Return UUID -> name of all root providers."""
    roots = _PROVIDERS.c.parent_provider_id.is_(None)
    rows = conn.execute(sa.select(_PROVIDERS.c.uuid, _PROVIDERS.c.name).where(roots))
    return {uuid: name or '' for uuid, name in rows}
