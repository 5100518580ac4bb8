"""The command `placement-manage headroom`."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import atomic_file, names, query_text, tables, unlisted
from placement.admin.assume import apply
from placement.admin.failure import CannotProceedError
from placement.admin.headroom import claims, reading, render, report
from placement.admin.headroom.claims import Line, Owner
from placement.admin.headroom.report import AGGREGATE, TREE, Headroom
from placement.cmd import assume, output, program
from placement.db import engine
from placement.schemas import IDENTIFIER

# The exit statuses.
ALL_FIT, SOME_FITS_NOWHERE = 0, 1

_TEXT = (
    'Count how many more claims of a query fit. The claims are simulated; the command does not '
    'write to the database.'
)
_OWNER = 'headroom'
_MAX_CLAIMS = 100_000
# The options that have an effect only with --claims.
_OPTIONS_OF_CLAIMS = ('max_claims', 'project', 'user')
# The number of identical lines that are written at once.
_LINES_AT_ONCE = 1000


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'headroom', _headroom, _TEXT)
    parser.epilog = (
        'Exit status: 0 at least one claim of each query fits; 1 no claim of some query fits; 2 a '
        'query, an assumption, or the command line is not valid, the database cannot be read, or '
        'the file cannot be written.'
    )
    parser.add_argument(
        'queries',
        metavar='QUERY',
        nargs='+',
        help='a query of GET /allocation_candidates: a query string, a path with a query, or a '
        'URL; - reads queries from standard input, one a line',
    )
    parser.add_argument(
        '--microversion', metavar='X.Y', default='latest', help='default: %(default)s'
    )
    parser.add_argument(
        '--by',
        choices=(TREE, AGGREGATE),
        help='count the claims by root provider or by aggregate of the root provider; '
        f'default: {TREE}',
    )
    parser.add_argument(
        '--claims',
        metavar='FILE',
        help='write the claims of the only query to this file, each as a line with the body of '
        'PUT /allocations/{consumer}',
    )
    parser.add_argument(
        '--max-claims',
        metavar='N',
        type=_count,
        help=f'write at most N claims; default: {_MAX_CLAIMS}',
    )
    parser.add_argument(
        '--project', metavar='ID', help=f'the project of the claims; default: {_OWNER}'
    )
    parser.add_argument('--user', metavar='ID', help=f'the user of the claims; default: {_OWNER}')
    assume.add_option(parser)
    output.add_names_option(parser)
    output.add_format_option(parser)


def _count(text: str) -> int:
    # int() accepts forms such as 1_0, and raises ValueError for very long texts.
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 999999999")
    return int(text)


def _headroom(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    known = names.read(arguments.names)
    changes = assume.parse(arguments.assume)
    texts = _texts(arguments.queries)
    version = query_text.version(arguments.microversion)
    queries = reading.parse(texts, version)
    claims_file = _claims_file(arguments, len(queries))
    with (
        engine.snapshot() as source,
        apply.assumed(source, changes, output.progress) as assumed,
    ):
        cloud = reading.read(
            assumed.conn,
            queries,
            output.progress,
            with_aggregates=arguments.by == AGGREGATE,
            with_names=arguments.format == output.TABLE and arguments.by != AGGREGATE,
        )
        missing = assumed.conn.scalar(unlisted.COUNT) or 0
    results = []
    for text, named, query in zip(texts, queries, cloud.queries, strict=True):
        simulation = report.simulation_of(query, cloud.anchors, cloud.sharing_id, output.progress)
        by = (
            report.by_aggregate(simulation.steps, cloud.aggregates)
            if arguments.by == AGGREGATE
            else report.by_tree(simulation.steps)
        )
        unused = report.fragmentation_of(query, named, cloud.anchors, simulation.steps)
        results.append(
            Headroom(text, str(version), simulation.fits, simulation.at_most, by, unused)
        )
        if claims_file:
            lines = claims.lines(simulation.steps, named, query, cloud.anchors, claims_file.owner)
            _write(claims_file, simulation.fits, lines)
    if arguments.format == output.JSON:
        members = assume.document(assumed)
        output.print_document([one | members for one in render.document(results)])
    else:
        aggregates = {uuid: name for uuid in cloud.aggregates.values() if (name := known.of(uuid))}
        heading = assume.heading(assumed, known)
        _print(arguments, heading, results, {**cloud.names, **aggregates})
    output.notify(unlisted.notice(missing))
    return ALL_FIT if all(result.fits for result in results) else SOME_FITS_NOWHERE


def _texts(arguments: Sequence[str]) -> list[str]:
    """Return the queries; those on standard input take the place of the argument `-`."""
    texts: list[str] = []
    for argument in arguments:
        if argument == '-':
            texts += filter(None, map(str.strip, sys.stdin.read().splitlines()))
        else:
            texts.append(argument.strip())
    if not texts:
        raise CannotProceedError('Standard input contains no query.')
    return texts


# Claims -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ClaimsFile:
    """The file of the option --claims.

    :ivar maximum: the maximum number of claims to write
    """

    path: str
    owner: Owner
    maximum: int


def _claims_file(arguments: argparse.Namespace, queries: int) -> _ClaimsFile | None:
    """Return the file to write, and check it before the long work; None without --claims."""
    path = arguments.claims
    if path is None:
        for name in _OPTIONS_OF_CLAIMS:
            if getattr(arguments, name) is not None:
                raise CannotProceedError(f'--{name.replace("_", "-")} requires --claims.')
        return None
    if path == '-':
        raise CannotProceedError(
            '--claims requires the name of a file, because standard output contains the result.'
        )
    if queries > 1:
        # Each query is computed from the present state, so the claims of two queries would not
        # fit one after the other.
        raise CannotProceedError(f'--claims requires a single query; there are {queries}.')
    owner = Owner(
        project=_identifier('project', arguments.project),
        user=_identifier('user', arguments.user),
    )
    atomic_file.check(path)
    return _ClaimsFile(path, owner, arguments.max_claims or _MAX_CLAIMS)


def _identifier(name: str, given: str | None) -> str:
    """Return the project or the user of the claims.

    :raises CannotProceedError: the API does not accept it
    """
    if given is None:
        return _OWNER
    # The import takes 50 ms, and most calls of the program do not need it.
    from placement import validation

    problem = validation.problem(IDENTIFIER, given)
    if problem is None and not _is_unicode(given):
        problem = 'it is not valid UTF-8'
    if problem is not None:
        raise CannotProceedError(f'--{name} is not valid: {tables.printable(problem)}.')
    return given


def _is_unicode(text: str) -> bool:
    # On the command line, Python represents bytes that are not UTF-8 as surrogates.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write(file: _ClaimsFile, fits: int, lines: Iterable[Line]) -> None:
    with atomic_file.replacing(file.path) as target:
        for line in claims.first(lines, file.maximum):
            for written in range(0, line.times, _LINES_AT_ONCE):
                target.write(line.text * min(_LINES_AT_ONCE, line.times - written))
    if fits > file.maximum:
        output.notify(
            f'{tables.printable(file.path)} contains the first {file.maximum} of {fits} claims, '
            'as --max-claims requires.'
        )


# Output -----------------------------------------------------------------------


def _print(
    arguments: argparse.Namespace,
    heading: str,
    results: Sequence[Headroom],
    names: Mapping[str, str],
) -> None:
    # The tables of many queries would be long, so they are printed on request.
    with_details = len(results) == 1 or arguments.by is not None
    text = render.text(results, arguments.by or TREE, names, with_details)
    output.print_text(heading + text)
    if not all(result.fits for result in results):
        output.notify('`placement-manage explain` explains why a query has no candidates.')
