"""Builds the JSON document and the text of the result."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import shlex
from typing import Any

from placement.admin import tables
from placement.admin.drain.report import NOT_FOUND, NOWHERE, SUM, Drain

# The number of trees, and of consumers without a place, in a table.
LONGEST = 10
_NUMBERS = ('Consumers', 'Placed')
_REASONS = {
    NOWHERE: 'A consumer has no place in any other tree, even if all others vanish.',
    SUM: 'The free capacity of the other trees is too small.',
}


def document(results: Sequence[Drain]) -> list[dict[str, Any]]:
    """Return the JSON document, with one element for each drain."""
    return list(map(_drain_document, results))


def _drain_document(result: Drain) -> dict[str, Any]:
    document = {
        'trees': [dataclasses.asdict(tree) for tree in result.trees],
        'verdict': result.verdict,
        'reason': result.reason,
        'consumers': result.consumers,
        'placed': result.placed,
        'missing': dict(result.missing),
        # PERF: `dataclasses.asdict` would copy the amounts, of which consumers of one flavor share
        # one object. With --each, a document can have a million consumers.
        'unplaced': [
            {
                'consumer': one.consumer,
                'type': one.type,
                'resources': one.resources,
                'nowhere': one.nowhere,
            }
            for one in result.unplaced
        ],
    }
    if result.moves is not None:
        document['moves'] = [move.document() for move in result.moves]
    return document


def text_of_each(results: Sequence[Drain], of_all: bool) -> str:
    """Return the text about drains one after another.

    :param results: in the order of `report.in_order`
    :param of_all: whether all trees with allocations were drained
    """
    lines = [tables.paragraph(' '.join(_verdict_of_each(results, of_all)))]
    rows = [
        (one.name, _verdict(one), one.consumers, one.placed, amounts(one.missing))
        for one in sorted(results, key=lambda one: one.is_pool)
        if not one.fits
    ]
    if rows:
        titles = ['Trees', 'Verdict', *_NUMBERS, 'Missing']
        lines += ['', tables.table(titles, rows[:LONGEST], numbers=_NUMBERS)]
    if len(rows) > LONGEST:
        lines.append(f'{_count(len(rows) - LONGEST, "more tree")}: see --format json.')
    return '\n'.join(lines)


def text(result: Drain, of_consumers: bool) -> str:
    """Return the text about trees that are drained together, or about single consumers.

    :param of_consumers: whether consumers leave the trees where they are
    """
    verdict = _verdict_of_consumers(result) if of_consumers else _verdict_of_trees(result)
    return '\n'.join([tables.paragraph(verdict), *_tables(result)])


def next_command(results: Sequence[Drain], each: bool, options: Sequence[str]) -> str | None:
    """Return the command to use next; None if there is none.

    :param each: whether the trees are drained one after another
    :param options: the conditions and the assumptions of the command line
    """
    hosts = [one for one in results if not one.is_pool and not (each and one.fits)]
    if not hosts or (hosts[0].fits and '--assume' in options):
        return None
    names = [tree.name or tree.uuid for tree in hosts[0].trees]
    if hosts[0].fits:
        words = ['openstack', 'compute', 'service', 'set', '--disable', names[0], 'nova-compute']
    else:
        copies = () if each else ('--assume', f'copies:1*{names[0]}')
        words = ['placement-manage', 'drain', *names, *options, *copies]
    return tables.printable(shlex.join(words))


def migration(result: Drain) -> str | None:
    """Return the command that migrates the first of single servers; None if it cannot."""
    if not (result.fits and result.moves and result.are_servers):
        return None
    move = result.moves[0]
    return tables.printable(
        'openstack --os-compute-api-version 2.30 server migrate --live-migration --host '
        f'{shlex.quote(move.to.name or move.to.uuid)} {move.consumer}'
    )


# The verdicts ---------------------------------------------------------------------


def _verdict_of_each(results: Sequence[Drain], of_all: bool) -> Iterator[str]:
    if not results:
        yield 'No resource provider has allocations.'
    hosts = [one for one in results if not one.is_pool]
    pools = [one for one in results if one.is_pool]
    fitting = sum(one.fits for one in hosts)
    if hosts and fitting == len(hosts):
        n_plus_1 = 'N+1 holds: each' if of_all else 'Each'
        yield f'{n_plus_1} of {_count(fitting, "host")} can be drained.'
    elif hosts:
        yield (
            f'{fitting:,} of {_count(len(hosts), "host")} can be drained; {hosts[0].name} '
            f'lacks {_room(hosts[0])}.'
        )
    if pools:
        fitting = sum(one.fits for one in pools)
        yield f'{fitting:,} of {_count(len(pools), "sharing provider")} can be drained.'


def _verdict_of_trees(result: Drain) -> str:
    name = result.name if len(result.trees) <= 3 else f'{len(result.trees)} trees'
    if result.fits:
        return f'{name} can be drained: {_moving(result)}.'
    if result.verdict == NOT_FOUND:
        return f'No plan was found that drains {name}: no {_room(result)}.'
    return f'{name} cannot be drained: no {_room(result)}. {_REASONS[result.reason or ""]}'


def _verdict_of_consumers(result: Drain) -> str:
    if result.fits:
        return f'All consumers can move: {_moving(result)}.'
    reason = f' {_REASONS[result.reason]}' if result.reason else ''
    return f'Not all consumers can move: no {_room(result)}.{reason}'


def _room(result: Drain) -> str:
    unplaced = result.consumers - result.placed
    return f'room for {unplaced:,} of {_consumers(result)} ({amounts(result.missing)})'


def _moving(result: Drain) -> str:
    if not result.consumers:
        return 'no consumer has to move'
    targets = {move.to.uuid for move in result.moves or ()}
    return f'{_consumers(result)}, to {_count(len(targets), "host")}'


def _consumers(result: Drain) -> str:
    return _count(result.consumers, 'server' if result.are_servers else 'consumer')


def _count(number: int, noun: str) -> str:
    return f'{number:,} {noun}' if number == 1 else f'{number:,} {noun}s'


# The evidence ---------------------------------------------------------------------


def _tables(result: Drain) -> Iterator[str]:
    rows = [
        (
            one.consumer,
            one.type or 'unknown',
            amounts(one.resources),
            'nowhere' if one.nowhere else '',
        )
        for one in result.unplaced[:LONGEST]
    ]
    if rows:
        yield ''
        yield 'Without a place:'
        yield tables.table(['Consumer', 'Type', 'Resources', 'Place'], rows)
    if more := result.consumers - result.placed - len(rows):
        yield f'{_count(more, "more consumer")}: see --format json.'
    moves = [
        (one.consumer, one.type or 'unknown', one.project or '-', one.to.name or one.to.uuid)
        for one in result.moves or ()
    ]
    if moves:
        yield ''
        yield tables.table(['Consumer', 'Type', 'Project', 'To'], moves)


def _verdict(result: Drain) -> str:
    return f'{result.verdict}: {result.reason}' if result.reason else result.verdict


def amounts(by_class: Mapping[str, int]) -> str:
    """Return a list of amounts."""
    return ', '.join(f'{amount} {tables.printable(name)}' for name, amount in by_class.items())
