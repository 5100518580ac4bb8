"""Builds the text of the result: the verdict, the evidence, and the command to use next."""

from collections.abc import Iterator, Mapping, Sequence
import shlex

from placement.admin import console
from placement.admin.console import count
from placement.admin.drain.report import NOT_FOUND, NOWHERE, SUM, Drain

# The number of trees, and of consumers without a place, in a table.
LONGEST = 10
_NUMBERS = ('Consumers', 'Placed')
_REASONS = {
    NOWHERE: ' A consumer has no place in any other tree, even if all others vanish.',
    SUM: ' The free capacity of the other trees is too small.',
    None: '',
}


def text_of_each(results: Sequence[Drain], of_all: bool) -> str:
    """Return the text about drains one after another.

    :param results: in the order of `report.in_order`
    :param of_all: whether all trees with allocations were drained
    """
    rows = [
        (
            one.name,
            f'{one.verdict}: {one.reason}' if one.reason else one.verdict,
            one.consumers,
            one.placed,
            amounts(one.missing),
        )
        for one in sorted(results, key=lambda one: one.is_pool)
        if not one.fits
    ]
    lines = [console.paragraph(' '.join(_verdict_of_each(results, of_all)))]
    if rows:
        titles = ['Trees', 'Verdict', *_NUMBERS, 'Missing']
        lines += ['', console.table(titles, rows[:LONGEST], numbers=_NUMBERS)]
        lines += _others(len(rows) - LONGEST, 'more tree')
    return '\n'.join(lines)


def text(result: Drain, of_consumers: bool) -> str:
    """Return the text about trees that are drained together, or about single consumers.

    :param of_consumers: whether consumers leave the trees where they are
    """
    lines = [console.paragraph(f'{_verdict(result, of_consumers)}.{_REASONS[result.reason]}')]
    unplaced = [
        (
            one['consumer'],
            one['type'] or 'unknown',
            amounts(one['resources']),
            'nowhere' if one['nowhere'] else '',
        )
        for one in result.unplaced[:LONGEST]
    ]
    if unplaced:
        titles = ['Consumer', 'Type', 'Resources', 'Place']
        lines += ['\nWithout a place:', console.table(titles, unplaced)]
        lines += _others(result.unplaced_count - LONGEST, 'more consumer')
    moves = [
        (
            move['consumer'],
            move['body'].get('consumer_type', 'unknown'),
            move['project'] or '-',
            move['to_name'] or move['to'],
        )
        for move in result.moves or ()
    ]
    if moves:
        lines += ['', console.table(['Consumer', 'Type', 'Project', 'To'], moves)]
    return '\n'.join(lines)


def next_command(results: Sequence[Drain], each: bool, options: Sequence[str]) -> str | None:
    """Return the command to use next; None if there is none.

    :param each: whether the trees are drained one after another
    :param options: the conditions and the assumptions of the command line
    """
    hosts = [one for one in results if not one.is_pool and not (each and one.fits)]
    if not hosts or (hosts[0].fits and '--assume' in options):
        return None
    names = [tree['name'] or tree['uuid'] for tree in hosts[0].trees]
    if hosts[0].fits:
        words = ['openstack', 'compute', 'service', 'set', '--disable', names[0], 'nova-compute']
    else:
        copies = () if each else ('--assume', f'copies:1*{names[0]}')
        words = ['placement-manage', 'drain', *names, *options, *copies]
    return console.printable(shlex.join(words))


def migration(result: Drain) -> str | None:
    """Return the command that migrates the first of single servers; None if it cannot."""
    if not (result.fits and result.moves and result.are_servers):
        return None
    move = result.moves[0]
    return console.printable(
        'openstack --os-compute-api-version 2.30 server migrate --live-migration --host '
        f'{shlex.quote(move["to_name"] or move["to"])} {move["consumer"]}'
    )


def amounts(by_class: Mapping[str, int]) -> str:
    """Return a list of amounts."""
    return ', '.join(f'{amount} {console.printable(name)}' for name, amount in by_class.items())


def _others(number: int, noun: str) -> Iterator[str]:
    """Yield the line about the rows that a table lacks."""
    if number > 0:
        yield f'{count(number, noun)}: see --format json.'


def _verdict_of_each(results: Sequence[Drain], of_all: bool) -> Iterator[str]:
    if not results:
        yield 'No resource provider has allocations.'
    hosts = [one for one in results if not one.is_pool]
    pools = [one.fits for one in results if one.is_pool]
    fitting = sum(one.fits for one in hosts)
    if hosts and fitting == len(hosts):
        n_plus_1 = 'N+1 holds: each' if of_all else 'Each'
        yield f'{n_plus_1} of {count(fitting, "host")} can be drained.'
    elif hosts:
        yield (
            f'{fitting:,} of {count(len(hosts), "host")} can be drained; {hosts[0].name} '
            f'lacks {_lacking(hosts[0])}.'
        )
    if pools:
        yield f'{sum(pools):,} of {count(len(pools), "sharing provider")} can be drained.'


def _verdict(result: Drain, of_consumers: bool) -> str:
    name = result.name if len(result.trees) <= 3 else f'{len(result.trees)} trees'
    if result.fits:
        what = 'All consumers can move' if of_consumers else f'{name} can be drained'
        targets = {move['to'] for move in result.moves or ()}
        moving = f'{_consumers(result)}, to {count(len(targets), "host")}'
        return f'{what}: {moving if result.consumers else "no consumer has to move"}'
    if of_consumers:
        what = 'Not all consumers can move'
    elif result.verdict == NOT_FOUND:
        what = f'No plan was found that drains {name}'
    else:
        what = f'{name} cannot be drained'
    return f'{what}: no {_lacking(result)}'


def _lacking(result: Drain) -> str:
    # Nothing is short for allocations from a provider that does not exist.
    missing = f' ({amounts(result.missing)})' if result.missing else ''
    return f'room for {result.unplaced_count:,} of {_consumers(result)}{missing}'


def _consumers(result: Drain) -> str:
    return count(result.consumers, 'server' if result.are_servers else 'consumer')
