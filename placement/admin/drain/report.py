"""Plans and judges each drain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.admin.drain import plan, requests
from placement.admin.drain.moves import Moved
from placement.admin.drain.places import Finder
from placement.admin.drain.plan import Move
from placement.admin.drain.proof import Prover
from placement.admin.drain.requests import Cloud, Conditions, Consumer, Request

FITS, IMPOSSIBLE, NOT_FOUND = 'fits', 'impossible', 'not found'
NOWHERE, SUM = 'nowhere', 'sum'
# The order of the results.
_ORDER = (IMPOSSIBLE, NOT_FOUND, FITS)
# The maximum number of unplaced consumers in a result.
LISTED = 100


@dataclass(frozen=True, slots=True)
class Tree:
    """A drained tree: its root provider."""

    uuid: str
    name: str


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
        `plan.shortages`)
    :ivar unplaced: the first `LISTED` consumers without a place
    :ivar is_pool: whether the trees are no hosts (see `Cloud.is_pool`)
    :ivar moves: the moves of the plan; None if they are not of interest
    """

    trees: Sequence[Tree]
    verdict: str
    reason: str | None
    consumers: int
    placed: int
    missing: Mapping[str, int]
    unplaced: Sequence[Unplaced]
    is_pool: bool
    moves: Sequence[Moved] | None = None

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
        self._cloud = cloud
        self._conditions = conditions
        self._finder = Finder(cloud, conditions)
        self._prover = Prover(self._finder)

    def drain(
        self, consumers: Sequence[Consumer], roots: frozenset[int] | None
    ) -> tuple[Drain, Sequence[Move]]:
        """Return the result, and the moves of the plan in their order.

        :param consumers: the consumers with allocations from the drained trees
        :param roots: the roots of these trees; None if each consumer leaves the trees where it is
        """
        all_ = requests.requests_of(self._cloud, self._conditions, consumers, roots)
        best = plan.Plan([], [])
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
        return self._result(trees, best, reason, nowhere), best.moves

    def _result(
        self, roots: frozenset[int], found: plan.Plan, reason: str | None, nowhere: set[Request]
    ) -> Drain:
        verdict = FITS
        if found.unplaced:
            verdict = IMPOSSIBLE if reason else NOT_FOUND
        shown = found.unplaced[:LISTED]
        resources = {kind: self._named(kind.amounts) for kind in {one.kind for one in shown}}
        return Drain(
            trees=sorted(map(self._tree, roots), key=lambda tree: (tree.name, tree.uuid)),
            verdict=verdict,
            reason=reason,
            consumers=len(found.moves) + len(found.unplaced),
            placed=len(found.moves),
            missing=self._named(plan.shortages(self._finder, found)),
            unplaced=[
                Unplaced(
                    request.consumer.uuid,
                    request.consumer.type,
                    resources[request.kind],
                    request in nowhere,
                )
                for request in shown
            ],
            is_pool=all(map(self._cloud.is_pool, roots)),
        )

    def _tree(self, root_id: int) -> Tree:
        uuid = self._cloud.anchors[root_id].root.uuid
        return Tree(uuid, self._cloud.names.get(uuid, ''))

    def _named(self, amounts: Mapping[int, int]) -> dict[str, int]:
        """Return the amounts by class name, in the order of the class ids."""
        classes = self._cloud.classes
        return {classes.get(id_, f'class {id_}'): amounts[id_] for id_ in sorted(amounts)}


def in_order(results: Sequence[Drain]) -> list[Drain]:
    """Return the results of several drains: the worst one first, then by name."""
    return sorted(
        results,
        key=lambda one: (_ORDER.index(one.verdict), one.placed - one.consumers, one.name),
    )
