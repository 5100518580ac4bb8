"""Parses the queries, and reads the provider trees that they need."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import sqlalchemy as sa

from placement.admin import cloud, query_text
from placement.admin.console import CannotProceedError, Progress, silent
from placement.admin.headroom import result, simulation
from placement.admin.headroom.result import Headroom
from placement.admin.query_text import refusing as refusing
from placement.candidates import model, names, request
from placement.microversion import Version


@dataclass(frozen=True, slots=True)
class Cloud:
    """The queries with ids, and all anchors of the cloud, in one snapshot of the database.

    :ivar classes: id -> name of the resource classes of all queries
    """

    queries: Sequence[model.Query[int]]
    classes: Mapping[int, str]
    anchors: Sequence[model.Anchor]

    def results(
        self,
        texts: Iterable[str],
        version: str = 'latest',
        progress: Progress = silent,
        aggregates: Mapping[int, str] | None = None,
    ) -> Iterator[Headroom]:
        """Yield the result of each query, from the same state.

        :param texts: for each query, the text or the name that the result has
        :param aggregates: aggregate id -> UUID; None to count the claims by tree
        """
        for text, query in zip(texts, self.queries, strict=True):
            found = simulation.of_query(query, self.anchors, progress)
            yield result.of(text, version, found, self.classes, aggregates)


def parse(texts: Sequence[str], version: Version) -> list[model.Query[str]]:
    """Return the queries of the command line.

    :raises CannotProceedError: the API refuses a query
    """
    queries = []
    for number, text in enumerate(texts, 1):
        with _refusing(number, len(texts)):
            queries.append(query_text.parse(text, version))
    return queries


def parse_named(arguments: Iterable[str]) -> dict[str, model.Query[str]]:
    """Return the queries of the option `--headroom NAME=QUERY` by name.

    :raises CannotProceedError: a query is not valid, or two have the same name
    """
    queries: dict[str, model.Query[str]] = {}
    for argument in arguments:
        name, separator, text = argument.partition('=')
        if not name or not separator:
            raise CannotProceedError(f'--headroom needs NAME=QUERY, but is {argument!r}.')
        if name in queries:
            raise CannotProceedError(f'Two queries of --headroom have the name {name!r}.')
        (queries[name],) = parse([text], query_text.version('latest'))
    return queries


def _refusing(number: int, count: int) -> AbstractContextManager[None]:
    return refusing(f'Query {number} is not valid: ' if count > 1 else '')


def read(
    conn: sa.Connection,
    queries: Sequence[model.Query[str]],
    progress: Progress = silent,
    providers: Sequence[model.Provider] | None = None,
) -> Cloud:
    """Read all trees once for all queries.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param providers: all providers, if they were read before
    :raises CannotProceedError: a class or trait of a query does not exist
    """
    with_ids, classes, sharing_id = [], dict[int, str](), None
    for number, query in enumerate(queries, 1):
        with _refusing(number, len(queries)):
            ids = names.look_up(conn, query)
            with_ids.append(request.with_ids(query, ids))
        classes.update({id_: name for name, id_ in ids.classes.items()})
        sharing_id = ids.sharing_id
    if providers is None:
        providers = cloud.providers(conn, progress)
    with_nested = any(query.same_subtrees for query in with_ids)
    return Cloud(with_ids, classes, cloud.anchors(providers, sharing_id, with_nested))
