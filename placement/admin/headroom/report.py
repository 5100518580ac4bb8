"""Counts the claims of each tree or aggregate."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placement.admin.headroom import claims, fragmentation
from placement.admin.headroom.fragmentation import Fragmentation
from placement.admin.headroom.simulation import Simulation, Step, simulate
from placement.admin.progress import Progress
from placement.candidates import model

TREE, AGGREGATE = 'tree', 'aggregate'


@dataclass(frozen=True, slots=True)
class Headroom:
    """The number of claims of one query that fit.

    :ivar query: the query as the operator wrote it
    :ivar at_most: a number of claims that no order of claims can exceed
    :ivar by: UUID of a root provider or of an aggregate -> number of claims, the most first; only
        those with claims. The sum exceeds `fits` if roots are in several aggregates
    :ivar unused: the free capacity that the claims cannot use, by class name
    """

    query: str
    microversion: str
    fits: int
    at_most: int
    by: Mapping[str, int]
    unused: Fragmentation[str]


def fragmentation_of(
    query: model.Query[int],
    names: model.Query[str],
    anchors: Sequence[model.Anchor],
    steps: Sequence[Step],
) -> Fragmentation[str]:
    """Return the free capacity that simulated claims of a query cannot use.

    :param names: the same query with names
    """
    found = fragmentation.fragmentation(prepared_query(query), anchors, steps)
    return found.named(claims.class_names(names, query))


def prepared_query(query: model.Query[int]) -> model.PreparedQuery:
    """Return a query in the form that the solver needs."""
    return model.PreparedQuery.of(query, one_per_tree=not query.nested)


def simulation_of(
    query: model.Query[int],
    anchors: Sequence[model.Anchor],
    sharing_id: int | None,
    progress: Progress,
) -> Simulation:
    """Simulate claims of a query until no candidate is left, and report the progress."""
    prepared = prepared_query(query)
    with progress('Simulating claims', len(anchors)) as advance:
        return simulate(prepared, anchors, sharing_id, advance)


def by_tree(steps: Sequence[Step]) -> dict[str, int]:
    """Return the number of claims by the UUID of the anchor root."""
    return _sums(steps, lambda step: (step.root.uuid,))


def by_aggregate(steps: Sequence[Step], uuids: Mapping[int, str]) -> dict[str, int]:
    """Return the number of claims by the UUIDs of the aggregates of the anchor root.

    :param uuids: aggregate id -> UUID
    """
    return _sums(steps, lambda step: tuple(uuids[id_] for id_ in step.root.aggregates))


def _sums(steps: Sequence[Step], keys: Callable[[Step], Sequence[str]]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for step in steps:
        for key in keys(step):
            sums[key] += step.times
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
