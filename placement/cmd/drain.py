"""Find out whether the consumers of provider trees fit elsewhere.

The command does not write to the database. The result is a plan of capacity, not an instruction to
Nova: Placement does not store which traits a consumer requested.

Exit status: 0 all consumers fit elsewhere; 1 some do not, or no plan was found; 2 an assumption or
the command line is not valid, the database cannot be read, or the file cannot be written.
"""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from placement.admin import console, named_trees
from placement.admin.assume import Assumed
from placement.admin.console import CannotProceedError
from placement.admin.drain import reading, render, report
from placement.admin.drain.places import Trees
from placement.admin.drain.report import Drain
from placement.cmd import assume, output, program

# The exit statuses.
ALL_FIT, SOME_DO_NOT = 0, 1

_OPTIONS = """
PROVIDER
    the name or the UUID of any provider of a tree; several trees are drained together
--each
    drain one tree after another, each from the present state; without PROVIDER, each tree with
    allocations
--consumer UUID
    move these consumers instead, each away from the trees where it is
--where QUERY
    conditions for the new trees: a query string with root_required and member_of, which apply to
    the root, and required, which applies to the new providers of a request group
--same-aggregates
    the new root has to be in all aggregates of the old one
--same-traits GLOB[,GLOB...]
    the new providers need the traits of the old one that match a pattern
--moves FILE
    write the moves to this file, each as a line with the body of PUT /allocations/{consumer}
"""


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'drain', _drain, __doc__)
    program.add_options(
        parser,
        _OPTIONS,
        provider={'nargs': '*'},
        consumer={'nargs': '+', 'default': []},
        where={'default': ''},
        same_traits={'type': program.words, 'default': []},
    )
    assume.add_options(parser)


def _drain(config: cfg.ConfigOpts) -> int:
    options = config.category
    known = console.read_names(options.names)
    changes = [assume.parse(text) for text in options.assume]
    _check(options)
    with assume.state(changes) as assumed:
        drains = report.in_order(_planned(assumed, options))
    if options.moves is not None:
        for result in drains:
            with output.replacing(options.moves) as target:
                target.writelines(result.lines())
    assume.print_results(
        options.format,
        assumed,
        known,
        [one.document() for one in drains],
        lambda: _text(options, drains, known),
    )
    return ALL_FIT if report.all_fit(drains) else SOME_DO_NOT


def _check(options: argparse.Namespace) -> None:
    """Check the command line before the long work.

    :raises CannotProceedError: it is not valid
    """
    if options.consumer and (options.provider or options.each):
        raise CannotProceedError('--consumer excludes PROVIDER and --each.')
    if not (options.consumer or options.provider or options.each):
        raise CannotProceedError('The command needs PROVIDER, --each, or --consumer.')
    if options.moves is not None:
        output.check_file('--moves', options.moves)


def _planned(assumed: Assumed, options: argparse.Namespace) -> Iterable[Drain]:
    """Return the result of each drain."""
    conn, found = assumed.conn, assumed.cloud
    where = reading.conditions(conn, found, options.where)
    trees = Trees(found, where, options.same_aggregates, options.same_traits)
    roots = named_trees.require_roots(found, options.provider)
    if options.moves is not None and options.each and len(roots or trees.anchors) != 1:
        raise CannotProceedError('--moves with --each requires a single tree.')
    if options.each:
        return reading.each(conn, trees, roots, output.progress)
    if roots:
        consumers = reading.consumers_of_trees(conn, found, roots)
    else:
        consumers = reading.consumers(conn, found, options.consumer)
    return [report.drain(trees, consumers, frozenset(roots) or None, with_moves=True)]


def _text(options: argparse.Namespace, drains: Sequence[Drain], known: console.Names) -> str:
    shown = known.in_values(drains)
    if options.each:
        text = render.text_of_each(shown, of_all=not options.provider)
    else:
        text = render.text(shown[0], bool(options.consumer))
    command = _next(options, drains)
    return f'{text}\n\nNext: {command}' if command else text


def _next(options: argparse.Namespace, drains: Sequence[Drain]) -> str | None:
    if options.consumer:
        return None if options.assume else render.migration(drains[0])
    given = ['--where', options.where] if options.where else []
    if options.same_aggregates:
        given.append('--same-aggregates')
    if options.same_traits:
        given += ['--same-traits', ','.join(options.same_traits)]
    for change in options.assume:
        given += ['--assume', change]
    return render.next_command(drains, options.each, given)
