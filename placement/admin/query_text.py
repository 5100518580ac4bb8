"""Reads a query of GET /allocation_candidates from the command line.

The grammar is that of the API: the same functions split the query string and check its parameters.
"""

from collections.abc import Iterable, Iterator
import contextlib
import re

from placement import exception, grammar, microversion
from placement.admin import console
from placement.admin.console import CannotProceedError
from placement.candidates import model, request
from placement.microversion import Version

# The start of the line that Placement logs if a search finds nothing.
_NOTHING = 'No allocation candidates: '
# This line, as a whole or from the query on, or the line of the request log.
_LOGGED = re.compile(
    rf'(?:{_NOTHING}|"GET |^)([^\s"\\]+)[\\"]* (?:status: .*)?microversion: (\d+\.\d+)'
)


def logged(text: str) -> tuple[str, str | None]:
    """Return the query and the microversion in a log line; another text stays as it is."""
    found = _LOGGED.search(text.strip())
    return (found[1], found[2]) if found else (text, None)


def of_request(request_id: str, log: Iterable[str]) -> list[tuple[str, str | None]]:
    """Return the different queries of a request with their microversions, in order.

    :param request_id: the id of the request, or the one that the client sent
    :param log: the lines of a log file
    """
    searches = (line for line in log if _NOTHING in line or '/allocation_candidates?' in line)
    found = [logged(line) for line in searches if request_id in line]
    return list(dict.fromkeys((query_string(text), version) for text, version in found if version))


@contextlib.contextmanager
def refusing(prefix: str = '') -> Iterator[None]:
    """Raise CannotProceedError for a query that the API refuses.

    The message is the sentence of the API.

    :param prefix: what the message begins with
    """
    try:
        yield
    except exception.BadInput as error:
        raise CannotProceedError(f'{prefix}{console.printable(str(error))}') from error


def parse(text: str, version: Version) -> model.Query[str]:
    """Return the query of a text.

    :param text: a query string, a path with a query string, or a URL. Each can be percent-encoded,
        as in the logs of Nova and of Placement
    :raises exception.BadInput: the API refuses the query
    """
    return request.parse(pairs(text), version)


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and values of the query parameters in a text, in order.

    :raises exception.InvalidQuery: the API cannot decode the query string
    """
    return items(query_string(text))


def items(query: str) -> list[tuple[str, str]]:
    """Return the names and values of the query parameters in a query string, in order.

    :raises exception.InvalidQuery: the API cannot decode the query string
    """
    # On the command line, Python represents bytes that are not UTF-8 as surrogates.
    raw = query.encode('utf-8', 'surrogateescape')
    return grammar.parse_query_string(raw.decode('latin-1'))


def query_string(text: str) -> str:
    """Return the query string of a query string, of a path, or of a URL."""
    text = text.strip()
    before, mark, after = text.partition('?')
    if any(separator in before for separator in '=&;'):
        return text
    if mark:
        return after.partition('#')[0]
    return '' if '/' in text else text


def version(text: str) -> Version:
    """Return the microversion of a text in the form `X.Y` or `latest`.

    :raises CannotProceedError: no such microversion has GET /allocation_candidates
    """
    first = microversion.ALLOCATION_CANDIDATES
    with contextlib.suppress(exception.MalformedVersion, exception.UnsupportedVersion):
        given = microversion.of_text(text)
        if given >= first:
            return given
    raise CannotProceedError(
        f"'{console.printable(text)}' is not a microversion of GET /allocation_candidates: use "
        f'{first} to {microversion.MAX_VERSION}, or latest.'
    )
