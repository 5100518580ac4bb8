"""Builds the JSON document, the text, and the bodies of the claims from a simulation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import shlex
from typing import Any, NamedTuple

import orjson

from placement import microversion
from placement.admin import tables
from placement.admin.headroom.simulation import Simulation, Step
from placement.candidates import model, render

TREE, AGGREGATE = 'tree', 'aggregate'
# The number of trees or aggregates in a table.
LONGEST = 10

_TITLES = {TREE: 'Root provider', AGGREGATE: 'Aggregate'}
# The bodies of claims are valid from this microversion on.
_VERSION = microversion.CONSUMER_TYPES
# The consumer type of the instances of Nova.
_CONSUMER_TYPE = 'INSTANCE'


@dataclass(frozen=True, slots=True)
class Headroom:
    """The number of claims of one query that fit.

    :ivar query: the query as the operator wrote it, or its name
    :ivar limit: the name of the class that is the limit (see `simulation`); None without one
    :ivar lacking: the number of trees that lack this class
    :ivar trees: the number of trees that suit the query
    :ivar by: UUID of a root provider or of an aggregate -> number of claims, the most first; only
        those with claims. The sum exceeds `fits` if roots are in several aggregates
    """

    query: str
    microversion: str
    fits: int
    limit: str | None
    lacking: int
    trees: int
    by: Mapping[str, int]

    @property
    def verdict(self) -> str:
        """How many claims fit, without a period."""
        if self.fits == 0:
            return f'no more of {self.query} fits'
        return f'{self.fits:,} more of {self.query} {"fits" if self.fits == 1 else "fit"}'

    @property
    def reason(self) -> str:
        """The sentence about the limit; empty without one."""
        if self.limit is None:
            return ''
        lack = 'lacks' if self.lacking == 1 else 'lack'
        return (
            f'The limit is {self.limit}: {self.lacking:,} of {self.trees:,} trees {lack} it for '
            'one more.'
        )


def of(
    text: str,
    version: str,
    found: Simulation,
    named: model.Query[str],
    query: model.Query[int],
    aggregates: Mapping[int, str] | None = None,
) -> Headroom:
    """Return the result of a query.

    :param named: the query with names
    :param query: the same query with ids
    :param aggregates: aggregate id -> UUID; None to count the claims by tree
    """
    by: Counter[str] = Counter()
    for step in found.steps:
        root = step.root
        keys = [root.uuid] if aggregates is None else [aggregates[id_] for id_ in root.aggregates]
        for key in keys:
            by[key] += step.times
    class_id, lacking, trees = found.limit or (None, 0, 0)
    return Headroom(
        text,
        version,
        found.fits,
        None if class_id is None else tables.printable(_class_names(named, query)[class_id]),
        lacking,
        trees,
        dict(sorted(by.items(), key=lambda item: (-item[1], item[0]))),
    )


def _class_names(named: model.Query[str], query: model.Query[int]) -> dict[int, str]:
    """Return id -> name of the resource classes of a query."""
    return {
        class_id: name
        for with_names, group in zip(named.groups, query.groups, strict=True)
        for (name, _), (class_id, _) in zip(with_names.amounts, group.amounts, strict=True)
    }


# Output -----------------------------------------------------------------------


def document(results: Iterable[Headroom]) -> list[dict[str, Any]]:
    """Return the JSON document, with one element for each query."""
    names = ('query', 'microversion', 'fits', 'by')
    return [{name: getattr(result, name) for name in names} for result in results]


def text(
    results: Sequence[Headroom],
    by: str | None,
    names: Mapping[str, str],
) -> str:
    """Return the text for a terminal: the verdict, the trees or aggregates, and what to do next.

    :param by: TREE or AGGREGATE; None for TREE, and only if there is a single query
    :param names: UUID of a root provider or of an aggregate -> name
    """
    return '\n'.join(_lines(results, by, names))


def _lines(results: Sequence[Headroom], by: str | None, names: Mapping[str, str]) -> Iterator[str]:
    if len(results) == 1:
        (result,) = results
        verdict = f'{result.verdict[0].upper()}{result.verdict[1:]}.'
        yield tables.paragraph(f'{verdict} {result.reason}')
    else:
        rows = [(result.fits, result.limit or '', result.query) for result in results]
        yield tables.table(['Fits', 'Limit', 'Query'], rows, numbers=['Fits'])
    for number, result in enumerate(results, 1):
        if result.by and (by or len(results) == 1):
            yield ''
            query = f' of query {number}' if len(results) > 1 else ''
            yield f'The {by or TREE}s in which the most claims{query} fit:'
            yield from _details(result, by or TREE, names)
    for result in results:
        if not result.fits:
            yield ''
            yield f'Run `placement-manage explain {shlex.quote(tables.printable(result.query))}`.'


def _details(result: Headroom, by: str, names: Mapping[str, str]) -> Iterator[str]:
    rows = [(names.get(uuid, ''), uuid, claims) for uuid, claims in result.by.items()]
    rows.sort(key=lambda row: (-row[2], row[0]))
    named = any(name for name, *_ in rows)
    shown: list[tuple[object, ...]] = [row if named else row[1:] for row in rows[:LONGEST]]
    titles = [_TITLES[by], 'UUID', 'Fits'] if named else [_TITLES[by], 'Fits']
    yield tables.table(titles, shown, numbers=['Fits'])
    if rest := [claims for *_, claims in rows[LONGEST:]]:
        claims = f' with {sum(rest)} claims' if by == TREE else ''
        trees, are = (f'{by}s', 'are') if len(rest) > 1 else (by, 'is')
        yield f'{len(rest)} more {trees}{claims} {are} not listed.'


# Claims -----------------------------------------------------------------------


class Line(NamedTuple):
    """A line of the file of claims, and how often it is repeated."""

    text: bytes
    times: int


def claims(
    steps: Sequence[Step],
    named: model.Query[str],
    query: model.Query[int],
    anchors: Iterable[model.Anchor],
    owner: Mapping[str, str],
    maximum: int,
) -> Iterator[Line]:
    """Yield the first claims in the order of the simulation, as lines of JSON.

    :param named: the query with names
    :param query: the same query with ids
    :param anchors: all anchors of the cloud
    :param owner: the project and the user, by the names of the members of the body
    :param maximum: the maximum number of claims, at least 1
    """
    requests = render.allocation_requests(
        (step.binding for step in steps),
        model.slots_of(query),
        {provider.id: provider.uuid for anchor in anchors for provider in anchor.tree},
        _class_names(named, query),
        _VERSION,
        orjson.dumps,
    )
    left = maximum
    for step, request in zip(steps, requests, strict=True):
        body = {
            **orjson.loads(request),
            **owner,
            'consumer_generation': None,
            'consumer_type': _CONSUMER_TYPE,
        }
        yield Line(orjson.dumps(body) + b'\n', min(step.times, left))
        left -= step.times
        if left <= 0:
            return
