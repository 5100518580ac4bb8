"""Builds the JSON document, the text, and the bodies of the claims from a simulation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import shlex
from typing import Any

import orjson

from placement import microversion
from placement.admin import cloud, console
from placement.admin.cloud import Cloud
from placement.admin.console import Progress, silent
from placement.admin.headroom import simulation
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


def of_queries(
    found: Cloud,
    texts: Iterable[str],
    queries: Sequence[model.Query[int]],
    version: str = 'latest',
    progress: Progress = silent,
    by: str | None = TREE,
) -> list[Headroom]:
    """Return the result of each query, from the same state of the cloud.

    :param texts: for each query, the text or the name that the result has
    :param by: AGGREGATE to count the claims by aggregate of the root
    """
    with_nested = any(query.same_subtrees for query in queries)
    anchors = cloud.anchors(found.providers, found.sharing_trait, with_nested)
    results = []
    for text, query in zip(texts, queries, strict=True):
        simulated = simulation.of_query(query, anchors, progress)
        results.append(_of(text, version, simulated, found, by))
    return results


def _of(text: str, version: str, simulated: Simulation, found: Cloud, by: str | None) -> Headroom:
    counts: Counter[str] = Counter()
    for root, _, times in simulated.steps:
        keys = [root.uuid]
        if by == AGGREGATE:
            keys = [found.aggregates[id_] for id_ in root.aggregates]
        counts.update(dict.fromkeys(keys, times))
    limit = reason = ''
    if simulated.limit is not None:
        class_id, lacking, trees = simulated.limit
        limit, lack = (
            console.printable(found.classes[class_id]),
            'lacks' if lacking == 1 else 'lack',
        )
        reason = f'The limit is {limit}: {lacking:,} of {trees:,} trees {lack} it for one more.'
    return Headroom(
        query=text,
        microversion=version,
        fits=sum(step.times for step in simulated.steps),
        by=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        limit=limit,
        reason=reason,
        steps=simulated.steps,
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
    steps: Sequence[Step], query: model.Query[int], found: Cloud, owner: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the claims in the order of the simulation, each as a line of JSON.

    :param owner: the project and the user, by the names of the members of the body
    """
    requests = render.allocation_requests(
        (step.binding for step in steps),
        model.slots_of(query),
        {provider.id: provider.uuid for provider in found.providers},
        found.classes,
        _VERSION,
        orjson.dumps,
    )
    for step, request in zip(steps, requests, strict=True):
        body = {**orjson.loads(request), **owner, **_NEW}
        yield from itertools.repeat(orjson.dumps(body) + b'\n', step.times)
