"""Builds the JSON document and the text of the result."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import Any

from placement.admin import tables
from placement.admin.drain.report import NOT_FOUND, NOWHERE, SUM, Drain, Unplaced

# The number of trees, and of consumers without a place, in a table.
LONGEST = 10
_NUMBERS = ('Consumers', 'Placed')
_REASONS = {
    NOWHERE: 'a consumer has no place in any other tree',
    SUM: 'the free capacity of the other trees is too small',
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
        'unplaced': [_unplaced_document(one) for one in result.unplaced],
    }
    if result.moves is not None:
        document['moves'] = [move.document() for move in result.moves]
    return document


def _unplaced_document(one: Unplaced) -> dict[str, Any]:
    # PERF: `dataclasses.asdict` would copy the amounts, of which consumers of one flavor share one
    # object. With --each, a document can have a million consumers.
    return {
        'consumer': one.consumer,
        'type': one.type,
        'resources': one.resources,
        'nowhere': one.nowhere,
    }


def text(results: Sequence[Drain], sentence: str, each: bool) -> str:
    """Return the text for a terminal.

    :param results: in the order of `report.in_order`
    :param sentence: the last line
    :param each: whether the table leaves out the drains that fit
    """
    listed = [one for one in results if not (each and one.fits)]
    return '\n'.join([*_lines(listed), sentence])


def _lines(results: Sequence[Drain]) -> Iterator[str]:
    if not results:
        return
    rows = [
        (one.name, _verdict(one), one.consumers, one.placed, amounts(one.missing))
        for one in results[:LONGEST]
    ]
    yield tables.table(['Trees', 'Verdict', *_NUMBERS, 'Missing'], rows, numbers=_NUMBERS)
    if more := len(results) - len(rows):
        trees = '1 more tree' if more == 1 else f'{more} more trees'
        yield f'{trees} without a plan for all consumers: see --format json.'
    if len(results) == 1 and results[0].unplaced:
        yield ''
        yield 'The consumers without a place:'
        yield from _unplaced(results[0])
    if len(results) == 1 and results[0].moves:
        yield ''
        yield 'The moves of the plan:'
        moves = [
            (one.consumer, one.type or 'unknown', one.project or '-', one.to_name or one.to)
            for one in results[0].moves
        ]
        yield tables.table(['Consumer', 'Type', 'Project', 'To'], moves)


def _verdict(result: Drain) -> str:
    return f'{result.verdict}: {result.reason}' if result.reason else result.verdict


def _unplaced(result: Drain) -> Iterator[str]:
    rows = [
        (
            one.consumer,
            one.type or 'unknown',
            amounts(one.resources),
            'nowhere' if one.nowhere else '',
        )
        for one in result.unplaced[:LONGEST]
    ]
    yield tables.table(['Consumer', 'Type', 'Resources', 'Place'], rows)
    more = result.consumers - result.placed - len(rows)
    if more:
        yield f'{_count(more, "more consumer")} {"is" if more == 1 else "are"} not listed.'


def sentence_of_each(results: Sequence[Drain], of_all: bool) -> str:
    """Return the sentence about drains one after another.

    :param results: in the order of `report.in_order`
    :param of_all: whether all trees with allocations were drained
    """
    if not results:
        return 'No resource provider has allocations.'
    hosts = [one for one in results if not one.is_pool]
    pools = [one for one in results if one.is_pool]
    sentences = []
    fitting = sum(one.fits for one in hosts)
    if hosts and fitting == len(hosts):
        n_plus_1 = 'N+1 holds: each' if of_all else 'Each'
        sentences.append(f'{n_plus_1} of {_count(fitting, "host")} can be drained.')
    elif hosts:
        sentences.append(
            f'{fitting} of {_count(len(hosts), "host")} can be drained; {_shown(hosts[0])} '
            f'{_lacks_room(hosts[0])}.'
        )
    if pools:
        fitting = sum(one.fits for one in pools)
        sentences.append(f'{fitting} of {_count(len(pools), "sharing provider")} can be drained.')
    return ' '.join(sentences)


def sentence_of_trees(result: Drain) -> str:
    """Return the sentence about trees that are drained together."""
    name = _shown(result)
    if result.fits:
        return f'{name} can be drained.'
    if result.verdict == NOT_FOUND:
        return f'No plan was found that drains {name}; it {_lacks_room(result)}.'
    return f'{name} cannot be drained: {_REASONS[result.reason or ""]}.'


def sentence_of_consumers(result: Drain) -> str:
    """Return the sentence about consumers that leave the trees where they are."""
    if result.fits:
        if result.consumers == 1:
            return 'The consumer can move.'
        return f'Each of {_count(result.consumers, "consumer")} can move.'
    reason = f': {_REASONS[result.reason]}' if result.reason else ''
    count = _count(result.consumers, 'consumer')
    return f'{result.placed} of {count} can move{reason}.'


def _shown(result: Drain) -> str:
    name = result.name if len(result.trees) <= 3 else f'{len(result.trees)} trees'
    return tables.printable(name)


def _lacks_room(result: Drain) -> str:
    missing = result.consumers - result.placed
    return f'lacks room for {_count(missing, "consumer")} ({amounts(result.missing)})'


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def amounts(by_class: Mapping[str, int]) -> str:
    """Return a list of amounts."""
    return ', '.join(f'{amount} {tables.printable(name)}' for name, amount in by_class.items())
