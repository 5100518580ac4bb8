"""The command `placement-manage drain`."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin import atomic_file, named_trees, names, unlisted
from placement.admin.assume import apply
from placement.admin.drain import reading, render, report
from placement.admin.drain.report import Drain
from placement.admin.failure import CannotProceedError
from placement.cmd import assume, output, program
from placement.db import engine

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
    known = names.read(arguments.names)
    changes = assume.parse(arguments.assume)
    _check(arguments)
    options = reading.Options(
        where=reading.parse_where(arguments.where),
        same_aggregates=arguments.same_aggregates,
        same_traits=tuple(arguments.same_traits),
    )
    drains: list[Drain] = []
    missing, interrupted = 0, False
    try:
        with (
            engine.snapshot() as source,
            apply.assumed(source, changes, output.progress, _copied(source, arguments)) as assumed,
        ):
            missing = assumed.conn.scalar(unlisted.COUNT) or 0
            # An interruption keeps the results so far.
            for result in _planned(assumed.conn, arguments, options):
                drains.append(result)  # noqa: PERF402
    except KeyboardInterrupt:
        if not drains:
            raise
        interrupted = True
    drains = report.in_order(drains)
    if arguments.format == output.JSON:
        members = assume.document(assumed)
        output.print_document([one | members for one in render.document(drains)])
    else:
        of_all = not (arguments.providers or interrupted)
        text = _text(arguments, known.in_values(drains), of_all)
        following = f'\n\nNext: {command}' if (command := _next(arguments, drains)) else ''
        output.print_text(assume.heading(assumed, known) + text + following)
    output.notify(unlisted.notice(missing))
    if interrupted:
        trees = '1 tree' if len(drains) == 1 else f'{len(drains)} trees'
        output.notify(f'The command was interrupted after {trees}.')
        return program.CANNOT
    return ALL_FIT if report.all_fit(drains) else SOME_DO_NOT


def _text(arguments: argparse.Namespace, drains: Sequence[Drain], of_all: bool) -> str:
    if arguments.each:
        return render.text_of_each(drains, of_all)
    return render.text(drains[0], bool(arguments.consumer))


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


def _check(arguments: argparse.Namespace) -> None:
    """Check the command line before the long work.

    :raises CannotProceedError: it is not valid
    """
    if arguments.consumer and (arguments.providers or arguments.each):
        raise CannotProceedError('--consumer excludes PROVIDER and --each.')
    if not (arguments.consumer or arguments.providers or arguments.each):
        raise CannotProceedError('The command needs PROVIDER, --each, or --consumer.')
    if arguments.moves is None:
        return
    if arguments.moves == '-':
        raise CannotProceedError(
            '--moves requires the name of a file, because standard output contains the result.'
        )
    atomic_file.check(arguments.moves)


def _copied(source: sa.Connection, arguments: argparse.Namespace) -> frozenset[int] | None:
    """Return the roots of the trees whose consumers the changes need; None for all trees."""
    if not arguments.assume:
        return frozenset()
    if arguments.each and not arguments.providers:
        return None
    return reading.roots_to_copy(source, arguments.providers, arguments.consumer)


def _planned(
    conn: sa.Connection, arguments: argparse.Namespace, options: reading.Options
) -> Iterator[Drain]:
    """Yield the result of each drain; write the moves."""
    roots = named_trees.require_roots(conn, arguments.providers)
    consumers = reading.consumers(conn, arguments.consumer) if arguments.consumer else []
    cloud, conditions = reading.cloud(conn, options, output.progress)
    planner = report.Planner(cloud, conditions)
    if arguments.moves is not None and arguments.each and len(roots or cloud.anchors) != 1:
        raise CannotProceedError('--moves with --each requires a single tree.')
    if arguments.each:
        planned = reading.each(conn, planner, roots, output.progress)
    else:
        if roots:
            consumers = reading.consumers_of_trees(conn, roots)
        planned = iter([planner.drain(consumers, frozenset(roots) or None, with_moves=True)])
    for result in planned:
        if arguments.moves is not None:
            lines = [move.line() for move in result.moves or ()]
            with atomic_file.replacing(arguments.moves) as target:
                target.writelines(lines)
        yield result
