"""Builds the JSON document, the text, and the bodies of the claims from a simulation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import shlex
from typing import Any

import orjson

from placement import microversion
from placement.admin import console
from placement.admin.headroom.simulation import Simulation, Step
from placement.candidates import model, render

TREE, AGGREGATE = 'tree', 'aggregate'
# The number of trees or aggregates in a table.
LONGEST = 10

_TITLES = {TREE: 'Root provider', AGGREGATE: 'Aggregate'}
# The bodies of claims are valid from this microversion on.
_VERSION = microversion.CONSUMER_TYPES
# The consumer of each claim is new, and has the type of the instances of Nova.
_NEW: Mapping[str, Any] = {'consumer_generation': None, 'consumer_type': 'INSTANCE'}


@dataclass(frozen=True, slots=True)
class Headroom:
    """The number of claims of one query that fit.

    :ivar query: the query as the operator wrote it, or its name
    :ivar by: UUID of a root provider or of an aggregate -> number of claims, the most first; only
        those with claims. The sum exceeds `fits` if roots are in several aggregates
    :ivar limit: the name of the class that is the limit (see `simulation`); empty without one
    :ivar reason: the sentence about the limit; empty without one
    :ivar steps: the simulated claims
    """

    query: str
    microversion: str
    fits: int
    by: Mapping[str, int]
    limit: str
    reason: str
    steps: Sequence[Step]

    @property
    def verdict(self) -> str:
        """How many claims fit, without a period."""
        if self.fits == 0:
            return f'no more of {self.query} fits'
        return f'{self.fits:,} more of {self.query} {"fits" if self.fits == 1 else "fit"}'


def of(
    text: str,
    version: str,
    found: Simulation,
    classes: Mapping[int, str],
    aggregates: Mapping[int, str] | None = None,
) -> Headroom:
    """Return the result of a query.

    :param classes: id -> name of the resource classes of the query
    :param aggregates: aggregate id -> UUID; None to count the claims by tree
    """
    by: Counter[str] = Counter()
    for root, _, times in found.steps:
        keys = [root.uuid] if aggregates is None else [aggregates[id_] for id_ in root.aggregates]
        by.update(dict.fromkeys(keys, times))
    limit = reason = ''
    if found.limit is not None:
        class_id, lacking, trees = found.limit
        limit, lack = console.printable(classes[class_id]), 'lacks' if lacking == 1 else 'lack'
        reason = f'The limit is {limit}: {lacking:,} of {trees:,} trees {lack} it for one more.'
    return Headroom(
        text,
        version,
        sum(step.times for step in found.steps),
        dict(sorted(by.items(), key=lambda item: (-item[1], item[0]))),
        limit,
        reason,
        found.steps,
    )


# Output -----------------------------------------------------------------------


def document(results: Iterable[Headroom]) -> list[dict[str, Any]]:
    """Return the JSON document, with one element for each query."""
    names = ('query', 'microversion', 'fits', 'by')
    return [{name: getattr(result, name) for name in names} for result in results]


def text(results: Sequence[Headroom], by: str | None, names: Mapping[str, str]) -> str:
    """Return the text for a terminal: the verdict, the trees or aggregates, and what to do next.

    :param by: TREE or AGGREGATE; None for TREE, and only if there is a single query
    :param names: UUID of a root provider or of an aggregate -> name
    """
    return '\n'.join(_lines(results, by, names))


def _lines(results: Sequence[Headroom], by: str | None, names: Mapping[str, str]) -> Iterator[str]:
    if len(results) == 1:
        (result,) = results
        verdict = f'{result.verdict[0].upper()}{result.verdict[1:]}.'
        yield console.paragraph(f'{verdict} {result.reason}')
    else:
        rows = [(result.fits, result.limit, result.query) for result in results]
        yield console.table(['Fits', 'Limit', 'Query'], rows, numbers=['Fits'])
    for number, result in enumerate(results, 1):
        if result.by and (by or len(results) == 1):
            yield ''
            query = f' of query {number}' if len(results) > 1 else ''
            yield f'The {by or TREE}s in which the most claims{query} fit:'
            yield from _details(result, by or TREE, names)
    for result in results:
        if not result.fits:
            yield ''
            yield f'Run `placement-manage explain {shlex.quote(console.printable(result.query))}`.'


def _details(result: Headroom, by: str, names: Mapping[str, str]) -> Iterator[str]:
    rows = [(names.get(uuid, ''), uuid, claims) for uuid, claims in result.by.items()]
    rows.sort(key=lambda row: (-row[2], row[0]))
    named = any(name for name, *_ in rows)
    shown: list[tuple[object, ...]] = [row if named else row[1:] for row in rows[:LONGEST]]
    titles = [_TITLES[by], 'UUID', 'Fits'] if named else [_TITLES[by], 'Fits']
    yield console.table(titles, shown, numbers=['Fits'])
    if rest := [claims for *_, claims in rows[LONGEST:]]:
        claims = f' with {sum(rest)} claims' if by == TREE else ''
        trees, are = (f'{by}s', 'are') if len(rest) > 1 else (by, 'is')
        yield f'{len(rest)} more {trees}{claims} {are} not listed.'


# Claims -----------------------------------------------------------------------


def claims(
    steps: Sequence[Step],
    query: model.Query[int],
    classes: Mapping[int, str],
    anchors: Iterable[model.Anchor],
    owner: Mapping[str, str],
) -> Iterator[bytes]:
    """Yield the claims in the order of the simulation, each as a line of JSON.

    :param classes: id -> name of the resource classes of the query
    :param anchors: all anchors of the cloud
    :param owner: the project and the user, by the names of the members of the body
    """
    requests = render.allocation_requests(
        (step.binding for step in steps),
        model.slots_of(query),
        {provider.id: provider.uuid for anchor in anchors for provider in anchor.tree},
        classes,
        _VERSION,
        orjson.dumps,
    )
    for step, request in zip(steps, requests, strict=True):
        body = {**orjson.loads(request), **owner, **_NEW}
        yield from itertools.repeat(orjson.dumps(body) + b'\n', step.times)
