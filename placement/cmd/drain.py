"""The command `placement-manage drain`."""

import argparse
from collections.abc import Iterator, Sequence
import functools
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin import atomic_file, cloud, console, named_trees
from placement.admin.console import CannotProceedError
from placement.admin.drain import reading, render, report
from placement.admin.drain.report import Drain
from placement.candidates.model import Query
from placement.cmd import assume, output, program

# The exit statuses.
ALL_FIT, SOME_DO_NOT = 0, 1

_TEXT = (
    'Find out whether the consumers of provider trees fit elsewhere. The command does not write to '
    'the database. The result is a plan of capacity, not an instruction to Nova: Placement does '
    'not store which traits a consumer requested.'
)


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'drain', _drain, _TEXT)
    parser.epilog = (
        'Exit status: 0 all consumers fit elsewhere; 1 some do not, or no plan was found; 2 '
        'an assumption or the command line is not valid, the database cannot be read, or the file '
        'cannot be written.'
    )
    parser.add_argument(
        'providers',
        metavar='PROVIDER',
        nargs='*',
        help='the name or the UUID of any provider of a tree; several trees are drained together',
    )
    parser.add_argument(
        '--each',
        action='store_true',
        help='drain one tree after another, each from the present state; without PROVIDER, each '
        'tree with allocations',
    )
    parser.add_argument(
        '--consumer',
        metavar='UUID',
        nargs='+',
        default=[],
        help='move these consumers instead, each away from the trees where it is',
    )
    _add_conditions(parser)
    parser.add_argument(
        '--moves',
        metavar='FILE',
        help='write the moves to this file, each as a line with the body of PUT '
        '/allocations/{consumer}',
    )
    assume.add_option(parser)
    output.add_names_option(parser)
    output.add_format_option(parser)


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--where',
        metavar='QUERY',
        default='',
        help='conditions for the new trees: a query string with root_required and member_of, which '
        'apply to the root, and required, which applies to the new providers of a request group',
    )
    parser.add_argument(
        '--same-aggregates',
        action='store_true',
        help='the new root has to be in all aggregates of the old one',
    )
    parser.add_argument(
        '--same-traits',
        metavar='GLOB[,GLOB...]',
        type=lambda text: [glob.strip() for glob in text.split(',')],
        default=[],
        help='the new providers need the traits of the old one that match a pattern',
    )


def _drain(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    known = console.read_names(arguments.names)
    changes = assume.parse(arguments.assume)
    _check(arguments)
    where = reading.parse_where(arguments.where)
    drains: list[Drain] = []
    interrupted = False
    try:
        with assume.state(changes, functools.partial(_copied, arguments)) as assumed:
            # An interruption keeps the results so far.
            for result in _planned(assumed.conn, arguments, where):
                drains.append(result)  # noqa: PERF402
    except KeyboardInterrupt:
        if not drains:
            raise
        interrupted = True
    for result in drains if arguments.moves is not None else ():
        lines = result.lines()
        with atomic_file.replacing(arguments.moves) as target:
            target.writelines(lines)
    drains = report.in_order(drains)
    of_all = not (arguments.providers or interrupted)
    assume.print_results(
        arguments.format,
        assumed,
        known,
        [one.document() for one in drains],
        lambda: _text(arguments, drains, known, of_all),
    )
    if interrupted:
        trees = '1 tree' if len(drains) == 1 else f'{len(drains)} trees'
        output.notify(f'The command was interrupted after {trees}.')
        return program.CANNOT
    return ALL_FIT if report.all_fit(drains) else SOME_DO_NOT


def _check(arguments: argparse.Namespace) -> None:
    """Check the command line before the long work.

    :raises CannotProceedError: it is not valid
    """
    if arguments.consumer and (arguments.providers or arguments.each):
        raise CannotProceedError('--consumer excludes PROVIDER and --each.')
    if not (arguments.consumer or arguments.providers or arguments.each):
        raise CannotProceedError('The command needs PROVIDER, --each, or --consumer.')
    if arguments.moves is not None:
        output.check_file('--moves', arguments.moves)


def _copied(arguments: argparse.Namespace, source: sa.Connection) -> frozenset[int] | None:
    """Return the roots of the trees whose consumers the changes need; None for all trees."""
    if arguments.each and not arguments.providers:
        return None
    return reading.roots_to_copy(source, arguments.providers, arguments.consumer)


def _planned(
    conn: sa.Connection, arguments: argparse.Namespace, where: Query[str]
) -> Iterator[Drain]:
    """Return the result of each drain."""
    roots = named_trees.require_roots(conn, arguments.providers)
    consumers = reading.consumers(conn, arguments.consumer) if arguments.consumer else []
    found = cloud.read(conn, output.progress, with_usage=False)
    trees = reading.trees(conn, found, where, arguments.same_aggregates, arguments.same_traits)
    if arguments.moves is not None and arguments.each and len(roots or trees.anchors) != 1:
        raise CannotProceedError('--moves with --each requires a single tree.')
    if arguments.each:
        return reading.each(conn, trees, roots, output.progress)
    if roots:
        consumers = reading.consumers_of_trees(conn, roots)
    return iter([report.drain(trees, consumers, frozenset(roots) or None, with_moves=True)])


def _text(
    arguments: argparse.Namespace, drains: Sequence[Drain], known: console.Names, of_all: bool
) -> str:
    shown = known.in_values(drains)
    if arguments.each:
        text = render.text_of_each(shown, of_all)
    else:
        text = render.text(shown[0], bool(arguments.consumer))
    command = _next(arguments, drains)
    return f'{text}\n\nNext: {command}' if command else text


def _next(arguments: argparse.Namespace, drains: Sequence[Drain]) -> str | None:
    if arguments.consumer:
        return None if arguments.assume else render.migration(drains[0])
    options = ['--where', arguments.where] if arguments.where else []
    if arguments.same_aggregates:
        options.append('--same-aggregates')
    if arguments.same_traits:
        options += ['--same-traits', ','.join(arguments.same_traits)]
    for change in arguments.assume:
        options += ['--assume', change]
    return render.next_command(drains, arguments.each, options)
