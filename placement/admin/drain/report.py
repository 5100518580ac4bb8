"""Plans and judges each drain, and describes the moves of its plan."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from placement import microversion
from placement.admin.drain import plan, requests
from placement.admin.drain.places import Finder
from placement.admin.drain.requests import Cloud, Conditions, Consumer, Request
from placement.admin.failure import CannotProceedError
from placement.candidates.model import InventoryKey

FITS, IMPOSSIBLE, NOT_FOUND = 'fits', 'impossible', 'not found'
NOWHERE, SUM = 'nowhere', 'sum'
# The order of the results.
_ORDER = (IMPOSSIBLE, NOT_FOUND, FITS)
# The maximum number of unplaced consumers in a result.
LISTED = 100
# From microversion 1.38 on, a body has a consumer type. Instances that Nova created have none, and
# a body of an older microversion keeps it so.
_WITH_TYPE, _WITHOUT_TYPE = str(microversion.ANY_TRAITS), str(microversion.REPARENTING)


@dataclass(frozen=True, slots=True)
class Tree:
    """A provider tree: its root provider."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Move:
    """Where a consumer is, and where it goes.

    :ivar origins: the trees that it leaves
    :ivar allocations: all its allocations after the move, as a body of the API has them
    """

    consumer: str
    type: str | None
    project: str | None
    user: str | None
    generation: int
    origins: Sequence[Tree]
    to: Tree
    allocations: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the move for JSON."""
        return {
            'consumer': self.consumer,
            'project': self.project,
            'from': [tree.uuid for tree in self.origins],
            'from_names': [tree.name for tree in self.origins],
            'to': self.to.uuid,
            'to_name': self.to.name,
        }

    def line(self) -> bytes:
        """Return a line of JSON with the body of PUT /allocations/{consumer} that makes the move.

        :raises CannotProceedError: the project or the user of the consumer does not exist
        """
        if self.project is None or self.user is None:
            raise CannotProceedError(
                f'The project or the user of the consumer {self.consumer} does not exist. Run '
                '`placement-manage audit --only owner-missing`.'
            )
        body = {
            'allocations': self.allocations,
            'project_id': self.project,
            'user_id': self.user,
            'consumer_generation': self.generation,
        }
        if self.type is not None:
            body['consumer_type'] = self.type
        version = _WITHOUT_TYPE if self.type is None else _WITH_TYPE
        return orjson.dumps(self.document() | {'microversion': version, 'body': body}) + b'\n'


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A consumer without a place, with the amounts that it has to move, by class name.

    :ivar nowhere: whether it has no place even if all other consumers vanish
    """

    consumer: str
    type: str | None
    resources: Mapping[str, int]
    nowhere: bool


@dataclass(frozen=True, slots=True)
class Drain:
    """The result for trees that are drained together.

    :ivar reason: why the drain is impossible; None with another verdict
    :ivar consumers: the number of consumers that have to move
    :ivar placed: the number of consumers that have a place in the plan
    :ivar missing: the amounts that the consumers without a place lack, by class name (see
        `plan.Plan.shortages`)
    :ivar unplaced: the first `LISTED` consumers without a place
    :ivar is_pool: whether the trees are no hosts (see `Cloud.is_pool`)
    :ivar are_servers: whether no consumer has a type other than INSTANCE
    :ivar moves: the moves of the plan in their order; None if they are not of interest
    """

    trees: Sequence[Tree]
    verdict: str
    reason: str | None
    consumers: int
    placed: int
    missing: Mapping[str, int]
    unplaced: Sequence[Unplaced]
    is_pool: bool
    are_servers: bool
    moves: Sequence[Move] | None = None

    @property
    def fits(self) -> bool:
        """Whether every consumer has a place in the plan."""
        return self.verdict == FITS

    @property
    def name(self) -> str:
        """The names of the trees."""
        return ', '.join(tree.name or tree.uuid for tree in self.trees)


class Planner:
    """Plans drains of one cloud, each from the present state."""

    def __init__(self, cloud: Cloud, conditions: Conditions) -> None:
        self.cloud = cloud
        self._conditions = conditions
        self._finder = Finder(cloud, conditions)
        self._prover = plan.Prover(self._finder)

    def drain(
        self, consumers: Sequence[Consumer], roots: frozenset[int] | None, with_moves: bool
    ) -> Drain:
        """Return the result for trees that are drained together.

        :param consumers: the consumers with allocations from the drained trees
        :param roots: the roots of these trees; None if each consumer leaves the trees where it is
        :param with_moves: whether the moves are of interest
        """
        all_ = requests.requests_of(self.cloud, self._conditions, consumers, roots)
        best = plan.Plan(self._finder, ())
        nowhere: set[Request] = set()
        reason = None
        for number, found in enumerate(plan.plans(self._finder, all_)):
            if number == 0 or len(found.unplaced) < len(best.unplaced):
                best = found
            if number == 0 and found.unplaced:
                nowhere = self._prover.nowhere(all_, found.unplaced)
                if nowhere:
                    reason = NOWHERE
                elif self._prover.exceeds_sum(all_):
                    reason = SUM
                if reason:
                    break
        trees = roots if roots is not None else frozenset().union(*(r.origins for r in all_))
        verdict = FITS
        if best.unplaced:
            verdict = IMPOSSIBLE if reason else NOT_FOUND
        return Drain(
            trees=self._trees(trees),
            verdict=verdict,
            reason=reason,
            consumers=len(all_),
            placed=len(best.moves),
            missing=self._named(best.shortages()),
            unplaced=self._unplaced(best.unplaced[:LISTED], nowhere),
            is_pool=all(map(self.cloud.is_pool, trees)),
            are_servers=all(one.type in (None, 'INSTANCE') for one in consumers),
            moves=list(map(self._move, best.moves)) if with_moves else None,
        )

    def _unplaced(self, shown: Sequence[Request], nowhere: set[Request]) -> list[Unplaced]:
        # PERF: consumers of one flavor share one object. With --each, a document can have a million
        # consumers.
        named = {kind: self._named(kind.amounts) for kind in {one.kind for one in shown}}
        return [
            Unplaced(one.consumer.uuid, one.consumer.type, named[one.kind], one in nowhere)
            for one in shown
        ]

    def _move(self, move: plan.Move) -> Move:
        consumer = move.request.consumer
        amounts: Counter[InventoryKey] = Counter(move.place.amounts)
        for provider_id, class_id, amount in move.request.kind.kept:
            amounts[provider_id, class_id] += amount
        allocations: dict[str, Any] = defaultdict(lambda: {'resources': {}})
        for (provider_id, class_id), amount in amounts.items():
            uuid = self.cloud.providers[provider_id].uuid
            allocations[uuid]['resources'][self.cloud.classes[class_id]] = amount
        (to,) = self._trees([move.place.root_id])
        return Move(
            consumer.uuid,
            consumer.type,
            consumer.project,
            consumer.user,
            consumer.generation,
            sorted(self._trees(move.request.origins), key=lambda tree: tree.uuid),
            to,
            dict(allocations),
        )

    def _trees(self, roots: Collection[int]) -> list[Tree]:
        """Return trees, sorted by name."""
        uuids = (self.cloud.anchors[root_id].root.uuid for root_id in roots)
        trees = [Tree(uuid, self.cloud.names.get(uuid, '')) for uuid in uuids]
        return sorted(trees, key=lambda tree: (tree.name, tree.uuid))

    def _named(self, amounts: Mapping[int, int]) -> dict[str, int]:
        """Return the amounts by class name, in the order of the class ids."""
        classes = self.cloud.classes
        return {classes.get(id_, f'class {id_}'): amounts[id_] for id_ in sorted(amounts)}


def in_order(results: Sequence[Drain]) -> list[Drain]:
    """Return the results of several drains: the worst one first, then by name."""
    return sorted(
        results,
        key=lambda one: (_ORDER.index(one.verdict), one.placed - one.consumers, one.name),
    )


def all_fit(results: Sequence[Drain]) -> bool:
    """Whether the consumers of all hosts fit elsewhere; without hosts, those of all trees."""
    hosts = [one for one in results if not one.is_pool]
    return all(one.fits for one in hosts or results)
