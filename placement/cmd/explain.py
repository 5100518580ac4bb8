"""The command `placement-manage explain`."""

import argparse
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import names, query_text, unlisted
from placement.admin.assume import apply
from placement.admin.explain import explanation, render
from placement.cmd import assume, output, program
from placement.db import engine

# The exit statuses.
CANDIDATES, NO_CANDIDATES = 0, 1

_TEXT = 'Explain why a query has no allocation candidates.'


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'explain', _explain, _TEXT)
    parser.epilog = (
        'Exit status: 0 the query has candidates; 1 none was found; 2 the query, an assumption, or '
        'the command line is not valid, or the database cannot be read.'
    )
    parser.add_argument(
        'query',
        metavar='QUERY',
        help='a query of GET /allocation_candidates: a query string, a path with a query, or a '
        'URL; - reads it from standard input',
    )
    parser.add_argument(
        '--microversion', metavar='X.Y', default='latest', help='default: %(default)s'
    )
    parser.add_argument(
        '--nearest',
        metavar='N',
        type=_count,
        default=5,
        help='list at most N trees in which few conditions fail; default: %(default)s',
    )
    assume.add_option(parser)
    output.add_names_option(parser)
    output.add_format_option(parser)


def _count(text: str) -> int:
    # int() accepts forms such as 1_0, and raises ValueError for very long texts.
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to 999999999")
    return int(text)


def _explain(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    known = names.read(arguments.names)
    changes = assume.parse(arguments.assume)
    version = query_text.version(arguments.microversion)
    text = sys.stdin.read() if arguments.query == '-' else arguments.query
    subject = explanation.Subject(
        text=text.strip(),
        version=version,
        max_steps=config.placement.max_candidate_search_steps,
        nearest=arguments.nearest,
    )
    with (
        engine.snapshot() as source,
        apply.assumed(source, changes, output.progress) as assumed,
    ):
        result = explanation.explain(assumed.conn, subject, output.progress)
        missing = assumed.conn.scalar(unlisted.COUNT) or 0
    if arguments.format == output.JSON:
        output.print_document(render.document(result) | assume.document(assumed))
    else:
        heading = assume.heading(assumed, known)
        output.print_text(heading + render.text(known.in_values(result)))
    output.notify(unlisted.notice(missing))
    return CANDIDATES if result.candidates.count else NO_CANDIDATES
