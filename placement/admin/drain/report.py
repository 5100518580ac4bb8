"""Plans and judges each drain. The result has the form of the JSON document and of the moves."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import functools
import itertools
from typing import Any

import orjson
import os_resource_classes as orc

from placement import microversion
from placement.admin.console import CannotProceedError
from placement.admin.drain import plan
from placement.admin.drain.places import Consumer, Place, Request, Trees, request_of

FITS, IMPOSSIBLE, NOT_FOUND = 'fits', 'impossible', 'not found'
NOWHERE, SUM = 'nowhere', 'sum'
# The order of the results.
_ORDER = (IMPOSSIBLE, NOT_FOUND, FITS)
# The maximum number of unplaced consumers in a result.
LISTED = 100
# From microversion 1.38 on, a body has a consumer type. Instances that Nova created have none, and
# a body of an older microversion keeps it so.
_WITH_TYPE, _WITHOUT_TYPE = str(microversion.ANY_TRAITS), str(microversion.REPARENTING)
# The document has these members, and those of the moves that are not only in the file.
_MEMBERS = ('trees', 'verdict', 'reason', 'consumers', 'placed', 'missing', 'unplaced')
_ONLY_IN_FILE = ('microversion', 'body')
_CPUS = (orc.VCPU, orc.PCPU)


@dataclass(frozen=True, slots=True)
class Drain:
    """The result for trees that are drained together. The lists have the form of the document.

    :ivar reason: why the drain is impossible; None with another verdict
    :ivar consumers: the number of consumers that have to move
    :ivar placed: the number of consumers that have a place in the plan
    :ivar missing: the amounts that the consumers without a place lack, by class name (see
        `plan.Plan.shortages`)
    :ivar unplaced: the first `LISTED` consumers without a place
    :ivar moves: the moves of the plan in their order, as lines of the file; None if they are not of
        interest
    :ivar is_pool: whether the trees are no hosts, because the root shares and no provider has CPUs
    :ivar are_servers: whether no consumer has a type other than INSTANCE
    """

    trees: Sequence[Mapping[str, str]]
    verdict: str
    reason: str | None
    consumers: int
    placed: int
    missing: Mapping[str, int]
    unplaced: Sequence[Mapping[str, Any]]
    moves: Sequence[Mapping[str, Any]] | None
    is_pool: bool
    are_servers: bool

    @property
    def fits(self) -> bool:
        """Whether every consumer has a place in the plan."""
        return self.verdict == FITS

    @property
    def name(self) -> str:
        """The names of the trees."""
        return ', '.join(tree['name'] or tree['uuid'] for tree in self.trees)

    @property
    def unplaced_count(self) -> int:
        """The number of consumers without a place."""
        return self.consumers - self.placed

    def document(self) -> dict[str, Any]:
        """Return the element of the JSON document."""
        document = {name: getattr(self, name) for name in _MEMBERS}
        if self.moves is not None:
            document['moves'] = [
                {key: value for key, value in move.items() if key not in _ONLY_IN_FILE}
                for move in self.moves
            ]
        return document

    def lines(self) -> Iterator[bytes]:
        """Yield the moves as lines of JSON.

        :raises CannotProceedError: the project or the user of a consumer does not exist
        """
        for move in self.moves or ():
            if None in (move['body']['project_id'], move['body']['user_id']):
                raise CannotProceedError(
                    f'The project or the user of the consumer {move["consumer"]} does not exist. '
                    'Run `placement-manage audit --only owner-missing`.'
                )
            yield orjson.dumps(move) + b'\n'


def drain(
    trees: Trees, consumers: Sequence[Consumer], roots: frozenset[int] | None, with_moves: bool
) -> Drain:
    """Return the result for trees that are drained together, from the present state.

    :param consumers: the consumers with allocations from the drained trees
    :param roots: the roots of these trees; None if each consumer leaves the trees where it is
    :param with_moves: whether the moves are of interest
    """
    requests = [request_of(trees, one, roots) for one in consumers]
    plans = plan.plans(trees, requests)
    best = next(plans)
    nowhere: set[Request] = set()
    reason = None
    if best.unplaced:
        nowhere = plan.nowhere(trees, requests, best.unplaced)
        if nowhere:
            reason = NOWHERE
        elif plan.exceeds_sum(trees, requests):
            reason = SUM
        else:
            best = min(itertools.chain([best], plans), key=lambda one: len(one.unplaced))
    verdict = FITS
    if best.unplaced:
        verdict = IMPOSSIBLE if reason else NOT_FOUND
    if roots is None:
        roots = frozenset().union(*(request.origins for request in requests))
    # PERF: consumers of one flavor share one object. With --each, a document can have a million
    # consumers.
    named = functools.cache(lambda places: _named(trees, places.amounts))
    return Drain(
        trees=_trees(trees, roots),
        verdict=verdict,
        reason=reason,
        consumers=len(requests),
        placed=len(best.moves),
        missing=_named(trees, best.shortages()),
        unplaced=[
            {
                'consumer': one.consumer.uuid,
                'type': one.consumer.type,
                'resources': named(one.places),
                'nowhere': one in nowhere,
            }
            for one in best.unplaced[:LISTED]
        ],
        moves=[_move(trees, *move) for move in best.moves] if with_moves else None,
        is_pool=all(_is_pool(trees, root_id) for root_id in roots),
        are_servers=all(one.type in (None, 'INSTANCE') for one in consumers),
    )


def in_order(results: Iterable[Drain]) -> list[Drain]:
    """Return the results of several drains: the worst one first, then by name."""
    return sorted(
        results,
        key=lambda one: (_ORDER.index(one.verdict), -one.unplaced_count, one.name),
    )


def all_fit(results: Sequence[Drain]) -> bool:
    """Whether the consumers of all hosts fit elsewhere; without hosts, those of all trees."""
    hosts = [one for one in results if not one.is_pool]
    return all(one.fits for one in hosts or results)


def _is_pool(trees: Trees, root_id: int) -> bool:
    tree = trees.anchors[root_id].tree
    classes = {trees.cloud.classes.get(id_) for one in tree for id_ in one.inventories}
    return root_id in trees.sharing and classes.isdisjoint(_CPUS)


def _trees(trees: Trees, roots: Collection[int]) -> list[dict[str, str]]:
    """Return trees, sorted by name."""
    found = [{'uuid': trees.providers[id_].uuid, 'name': trees.cloud.names[id_]} for id_ in roots]
    return sorted(found, key=lambda tree: (tree['name'], tree['uuid']))


def _named(trees: Trees, amounts: Mapping[int, int]) -> dict[str, int]:
    """Return the amounts by class name, in the order of the class ids."""
    classes = trees.cloud.classes
    return {classes.get(id_, f'class {id_}'): amounts[id_] for id_ in sorted(amounts)}


def _move(trees: Trees, moved: Request, place: Place) -> dict[str, Any]:
    """Return the line of a move, with the body of PUT /allocations/{consumer} that makes it."""
    consumer = moved.consumer
    allocations: dict[str, Any] = {}
    for (provider_id, class_id), amount in (Counter(place.amounts) + moved.places.kept).items():
        of_provider = allocations.setdefault(trees.providers[provider_id].uuid, {'resources': {}})
        of_provider['resources'][trees.cloud.classes[class_id]] = amount
    old = sorted(_trees(trees, moved.origins), key=lambda tree: tree['uuid'])
    (new,) = _trees(trees, [place.root_id])
    body: dict[str, Any] = {
        'allocations': allocations,
        'project_id': consumer.project,
        'user_id': consumer.user,
        'consumer_generation': consumer.generation,
    }
    if consumer.type is not None:
        body['consumer_type'] = consumer.type
    return {
        'consumer': consumer.uuid,
        'project': consumer.project,
        'from': [tree['uuid'] for tree in old],
        'from_names': [tree['name'] for tree in old],
        'to': new['uuid'],
        'to_name': new['name'],
        'microversion': _WITHOUT_TYPE if consumer.type is None else _WITH_TYPE,
        'body': body,
    }
