"""Count how many more claims of a query fit.

The claims are simulated; the command does not write to the database.

Exit status: 0 at least one claim of each query fits; 1 no claim of some query fits; 2 a query, an
assumption, or the command line is not valid, the database cannot be read, or the file cannot be
written.
"""

import argparse
from collections.abc import Iterable, Sequence
import itertools
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import console, query_text
from placement.admin.console import CannotProceedError
from placement.admin.headroom import reading, result
from placement.admin.headroom.result import AGGREGATE, TREE
from placement.cmd import assume, output, program
from placement.schemas import IDENTIFIER

# The exit statuses.
ALL_FIT, SOME_FITS_NOWHERE = 0, 1

_OPTIONS = """
QUERY
    a query of GET /allocation_candidates: a query string, a path with a query, or a URL; - reads
    queries from standard input, one a line
--microversion X.Y
    default: %(default)s
--by
    count the claims by root provider or by aggregate of the root provider; default: tree
--claims FILE
    write the claims of the only query to this file, each as a line with the body of PUT
    /allocations/{consumer}
--max-claims N
    write at most N claims; default: %(default)s
--project ID
    the project of the claims; default: %(default)s
--user ID
    the user of the claims; default: %(default)s
"""
# The defaults of the options that have an effect only with --claims.
_OF_CLAIMS = {'max_claims': 100_000, 'project': 'headroom', 'user': 'headroom'}


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'headroom', _headroom, __doc__)
    program.add_options(
        parser,
        _OPTIONS,
        query={'nargs': '+'},
        microversion={'default': 'latest'},
        by={'action': 'store', 'choices': (TREE, AGGREGATE)},
        max_claims={'type': program.number(1, 999_999_999)},
    )
    parser.set_defaults(**_OF_CLAIMS)
    assume.add_options(parser)


def _headroom(config: cfg.ConfigOpts) -> int:
    options = config.category
    known = console.read_names(options.names)
    changes = [assume.parse(text) for text in options.assume]
    texts = _texts(options.query)
    version = query_text.version(options.microversion)
    named = reading.parse(texts, version)
    _check_claims(options, len(named))
    with assume.state(changes) as assumed:
        queries = reading.with_ids(assumed.conn, assumed.cloud, named)
    found, by = assumed.cloud, options.by
    results = result.of_queries(found, texts, queries, str(version), output.progress, by)
    if options.claims:
        owner = {'project_id': options.project, 'user_id': options.user}
        lines = result.claims(results[0].steps, queries[0], found, owner)
        _write_claims(options, lines, results[0].fits)
    shown = {one.uuid: found.names[one.id] for one in found.providers}
    if by == AGGREGATE:
        shown = {uuid: known.of(uuid) or '' for uuid in found.aggregates.values()}
    assume.print_results(
        options.format,
        assumed,
        known,
        result.document(results),
        lambda: result.text(results, by, shown),
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


def _check_claims(options: argparse.Namespace, queries: int) -> None:
    """Check the options before the long work."""
    if options.claims is None:
        for name, default in _OF_CLAIMS.items():
            if getattr(options, name) != default:
                raise CannotProceedError(f'--{name.replace("_", "-")} requires --claims.')
        return
    if queries > 1:
        # Each query is computed from the present state, so the claims of two queries would not
        # fit one after the other.
        raise CannotProceedError(f'--claims requires a single query; there are {queries}.')
    for name in ('project', 'user'):
        with query_text.refusing(f'--{name} is not valid: '):
            assume.valid(IDENTIFIER, getattr(options, name))
    output.check_file('--claims', options.claims)


def _write_claims(options: argparse.Namespace, lines: Iterable[bytes], number: int) -> None:
    with output.replacing(options.claims) as target:
        target.writelines(itertools.islice(lines, options.max_claims))
    if number > options.max_claims:
        output.notify(
            f'{console.printable(options.claims)} contains the first {options.max_claims} of '
            f'{number} claims, as --max-claims requires.'
        )
