"""Builds the JSON document and the text of the result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.admin import tables
from placement.admin.headroom.report import AGGREGATE, TREE, Headroom

# The number of trees or aggregates in a table.
LONGEST = 10

# The words for classes in sentences; other classes have their name.
_SUBSTANCES = {'MEMORY_MB': 'memory', 'DISK_GB': 'disk'}
_TITLES = {TREE: 'Root provider', AGGREGATE: 'Aggregate'}


def document(results: Sequence[Headroom]) -> list[dict[str, Any]]:
    """Return the JSON document, with one element for each query."""
    return [
        {
            'query': result.query,
            'microversion': result.microversion,
            'fits': result.fits,
            'at_most': result.at_most,
            'by': dict(result.by),
            'lost': dict(result.unused.lost),
        }
        for result in results
    ]


def text(results: Sequence[Headroom], by: str, names: Mapping[str, str], with_details: bool) -> str:
    """Return the text for a terminal.

    :param by: TREE or AGGREGATE
    :param names: UUID of a root provider or of an aggregate -> name
    :param with_details: whether to list the trees or aggregates with the most claims
    """
    return '\n'.join(_lines(results, by, names, with_details))


def _lines(
    results: Sequence[Headroom], by: str, names: Mapping[str, str], with_details: bool
) -> Iterator[str]:
    rows = [(result.query, result.fits, result.at_most) for result in results]
    yield tables.table(['Query', 'Fits', 'At most'], rows, numbers=['Fits', 'At most'])
    for number, result in enumerate(results, 1):
        if sentence := lost_sentence(result):
            yield f'Query {number}: {sentence}' if len(results) > 1 else sentence
    for number, result in enumerate(results, 1):
        if with_details and result.by:
            yield ''
            yield _heading(by, number if len(results) > 1 else None)
            yield _details(result, by, names)
            yield from _rest(result, by)


def lost_sentence(result: Headroom) -> str | None:
    """Return how much free capacity the query cannot use; None if it is less than one claim."""
    unused = result.unused
    if unused.most is None:
        return None
    name = _SUBSTANCES.get(unused.most, unused.most)
    percent = 100 * unused.lost[unused.most] // unused.free[unused.most]
    if unused.lack is None:
        why = 'because of other conditions'
    elif unused.lack == unused.most:
        why = 'in remainders that are too small for a claim'
    else:
        why = f'for lack of {_SUBSTANCES.get(unused.lack, unused.lack)}'
    return tables.printable(
        f'{result.fits:,} fit; by {name} alone {unused.alone[unused.most]:,} would: {percent} % of '
        f'the free {name} is unusable for it, mostly {why}.'
    )


def _heading(by: str, number: int | None) -> str:
    query = f' of query {number}' if number else ''
    return f'The {by}s in which the most claims{query} fit:'


def _details(result: Headroom, by: str, names: Mapping[str, str]) -> str:
    if by == AGGREGATE:
        top = [
            (f'{names[uuid]} {uuid}' if uuid in names else uuid, claims)
            for uuid, claims in list(result.by.items())[:LONGEST]
        ]
        return tables.table([_TITLES[by], 'Fits'], top, numbers=['Fits'])
    rows = [(names.get(uuid, ''), uuid, claims) for uuid, claims in result.by.items()]
    rows.sort(key=lambda row: (-row[2], row[0]))
    return tables.table([_TITLES[by], 'UUID', 'Fits'], rows[:LONGEST], numbers=['Fits'])


def _rest(result: Headroom, by: str) -> Iterator[str]:
    rest = list(result.by.values())[LONGEST:]
    if not rest:
        return
    claims = f' with {sum(rest)} claims' if by == TREE else ''
    trees, are = (f'{by}s', 'are') if len(rest) > 1 else (by, 'is')
    yield f'{len(rest)} more {trees}{claims} {are} not listed.'
