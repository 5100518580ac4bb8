"""Explain why a query has no allocation candidates.

Exit status: 0 the query has candidates; 1 none was found; 2 the query, an assumption, or the
command line is not valid, or the database cannot be read.
"""

import fileinput
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import console, query_text
from placement.admin.console import CannotProceedError
from placement.admin.explain import explanation, render
from placement.cmd import assume, output, program

# The exit statuses.
CANDIDATES, NO_CANDIDATES = 0, 1

_OPTIONS = """
QUERY
    a query of GET /allocation_candidates: a query string, a path with a query, a URL, or the line
    that Placement logged; - reads it from standard input
--request ID
    QUERY is a log file of Placement: explain the last search of the request with this id, which can
    be that of the client
--microversion X.Y
    default: that of the line of the log, or latest
--nearest N
    list at most N trees, or groups of equal trees, in which few conditions fail; default:
    %(default)s
"""


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'explain', _explain, __doc__)
    program.add_options(
        parser, _OPTIONS, nearest={'type': program.number(0, 999_999_999), 'default': 5}
    )
    assume.add_options(parser)


def _query(given: str, request_id: str | None) -> tuple[str, str | None]:
    """Return the query, and the microversion if a log contains it.

    :param given: the argument QUERY
    :raises OSError: the log cannot be read
    :raises CannotProceedError: the log contains no search of the request
    """
    if request_id is None:
        return query_text.logged(sys.stdin.read() if given == '-' else given)
    # As a name of a file, `-` stands for standard input.
    with fileinput.input(given, encoding='utf-8', errors='replace') as log:
        found = query_text.of_request(request_id, log)
    if not found:
        shown, id_ = map(console.printable, (given, request_id))
        raise CannotProceedError(
            f'The log {shown} contains no search of the request {id_}; Placement logs searches at '
            'the level INFO.'
        )
    if len(found) > 1:
        output.notify(f'The request made {len(found)} different searches; this is the last one.')
    return found[-1]


def _explain(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    known = console.read_names(arguments.names)
    changes = [assume.parse(text) for text in arguments.assume]
    text, logged = _query(arguments.query, arguments.request)
    version = query_text.version(arguments.microversion or logged or 'latest')
    max_steps = config.placement.max_candidate_search_steps
    with assume.state(changes) as assumed:
        result = explanation.explain(
            assumed.conn,
            assumed.cloud,
            text.strip(),
            version,
            max_steps,
            arguments.nearest,
            output.progress,
        )
    command = render.next_command(result, arguments.assume)
    assume.print_results(
        arguments.format,
        assumed,
        known,
        result.document,
        lambda: render.text(known.in_values(result), command),
    )
    return CANDIDATES if result.document['candidates']['trees'] else NO_CANDIDATES
