"""Parses the queries, and looks up the ids of their names."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager

import sqlalchemy as sa

from placement.admin import cloud, query_text
from placement.admin.cloud import Cloud
from placement.admin.console import CannotProceedError
from placement.candidates import model, request
from placement.microversion import Version


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
    return query_text.refusing(f'Query {number} is not valid: ' if count > 1 else '')


def with_ids(
    conn: sa.Connection, found: Cloud, queries: Collection[model.Query[str]]
) -> list[model.Query[int]]:
    """Return the queries with ids.

    :raises CannotProceedError: a class or trait of a query does not exist
    """
    result, known = [], found.ids
    for number, query in enumerate(queries, 1):
        with _refusing(number, len(queries)):
            result.append(request.with_ids(query, cloud.look_up(conn, query, known)))
    return result
