"""The command `placement-manage headroom`."""

import argparse
from collections.abc import Sequence
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import atomic_file, cloud, names, query_text, tables
from placement.admin.failure import CannotProceedError
from placement.admin.headroom import reading, result
from placement.admin.headroom.result import AGGREGATE, TREE
from placement.admin.headroom.simulation import Simulation
from placement.candidates.model import Query
from placement.cmd import assume, output, program
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
    options = config.category
    known = names.read(options.names)
    changes = assume.parse(options.assume)
    texts = _texts(options.queries)
    version = query_text.version(options.microversion)
    queries = reading.parse(texts, version)
    owner = _check_claims(options, len(queries))
    aggregates = shown = None
    with assume.state(changes) as assumed:
        read = reading.read(assumed.conn, queries, output.progress)
        if options.by == AGGREGATE:
            aggregates = cloud.aggregates(assumed.conn)
        elif options.format == output.TABLE:
            shown = cloud.root_names(assumed.conn)
    simulations = list(read.simulations(output.progress))
    results = [
        result.of(text, str(version), simulation, named, query, aggregates)
        for text, simulation, named, query in zip(
            texts, simulations, queries, read.queries, strict=True
        )
    ]
    if options.claims:
        _write_claims(options, simulations[0], queries[0], read, owner)
    if aggregates is not None:
        shown = {uuid: known.of(uuid) or '' for uuid in aggregates.values()}
    assume.print_results(
        options.format,
        assumed,
        known,
        result.document(results),
        lambda: result.text(results, options.by, shown or {}),
    )
    return ALL_FIT if all(one.fits for one in results) else SOME_FITS_NOWHERE


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


def _check_claims(options: argparse.Namespace, queries: int) -> dict[str, str]:
    """Return the owner of the claims. Check the options before the long work."""
    if options.claims is None:
        for name in _OPTIONS_OF_CLAIMS:
            if getattr(options, name) is not None:
                raise CannotProceedError(f'--{name.replace("_", "-")} requires --claims.')
        return {}
    if queries > 1:
        # Each query is computed from the present state, so the claims of two queries would not
        # fit one after the other.
        raise CannotProceedError(f'--claims requires a single query; there are {queries}.')
    owner = {
        f'{name}_id': _identifier(name, getattr(options, name)) for name in ('project', 'user')
    }
    output.check_file('--claims', options.claims)
    return owner


def _identifier(name: str, given: str | None) -> str:
    """Return the project or the user of the claims.

    :raises CannotProceedError: the API does not accept it
    """
    if given is None:
        return _OWNER
    # The import takes 50 ms, and most calls of the program do not need it.
    from placement import validation

    problem = validation.problem(IDENTIFIER, given)
    # On the command line, Python represents bytes that are not UTF-8 as surrogates.
    if problem is None and given.encode(errors='replace').decode() != given:
        problem = 'it is not valid UTF-8'
    if problem is not None:
        raise CannotProceedError(f'--{name} is not valid: {tables.printable(problem)}.')
    return given


def _write_claims(
    options: argparse.Namespace,
    simulation: Simulation,
    named: Query[str],
    read: reading.Cloud,
    owner: dict[str, str],
) -> None:
    maximum = options.max_claims or _MAX_CLAIMS
    (query,) = read.queries
    lines = result.claims(simulation.steps, named, query, read.anchors, owner, maximum)
    with atomic_file.replacing(options.claims) as target:
        for line in lines:
            for written in range(0, line.times, _LINES_AT_ONCE):
                target.write(line.text * min(_LINES_AT_ONCE, line.times - written))
    if simulation.fits > maximum:
        output.notify(
            f'{tables.printable(options.claims)} contains the first {maximum} of '
            f'{simulation.fits} claims, as --max-claims requires.'
        )
