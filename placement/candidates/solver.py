"""The search within one anchor: pure, lazy, exact, and counted.

`solve` yields every way to bind the slots of a query to providers that serve the anchor. It goes
depth first, binds the slot with the fewest options first, and does no more than the caller pulls.
What can be recognized as impossible beforehand is in `contest`.

All work is counted in steps (`steps.Steps`). When the steps of a turn are used up, the solver
yields None and waits; it never ends before the search is complete.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import math
import random

from placement.candidates import contest, eligibility, model, rules, subtrees
from placement.candidates.contest import Contest, Demands
from placement.candidates.steps import Steps
from placement.candidates.subtrees import Domains

# Options that are tried without a result, beyond one for each option of each slot, before
# necessary conditions are tested at each step.
TEST_AFTER = 200
# What a candidate costs for each of its slots: it takes memory and has to be rendered.
CANDIDATE_COST = 4
# Parts of a check of a provider for a slot that count as one step; see `_weight`.
_PARTS_A_STEP = 4

# A candidate, or None for a pause.
Solutions = Iterator[model.Chosen | None]


@dataclass(frozen=True, slots=True)
class Task:
    """A query, prepared once for all anchors."""

    query: model.Query[int]
    slots: tuple[model.Slot, ...]
    # Slots of one kind have the same servers.
    kinds: tuple[int, ...]
    # Whether the search leaves out combinations of several providers of one tree.
    one_per_tree: bool
    # same_subtree as sets of slot numbers.
    subtrees: tuple[frozenset[int], ...]
    # Slot -> the steps that the trial of an option takes, and the sum of what slots ask for.
    trials: tuple[int, ...]
    parts: int
    # Whether there are traits that the providers of the group without suffix need together.
    collective: bool
    # A slot of each kind: the classes of the group without suffix, and suffixed groups.
    loose: Mapping[int, model.Slot]
    granular: Mapping[int, model.Slot]

    @classmethod
    def of(cls, query: model.Query[int], one_per_tree: bool = False) -> 'Task':
        slots = model.slots_of(query)
        numbers: dict[tuple[object, ...], int] = {}
        kinds = tuple(numbers.setdefault(slot.kind, len(numbers)) for slot in slots)
        samples = dict(zip(kinds, slots, strict=True))
        return cls(
            query=query,
            slots=slots,
            kinds=kinds,
            one_per_tree=one_per_tree,
            subtrees=tuple(
                frozenset(n for n, slot in enumerate(slots) if slot.group.suffix in suffixes)
                for suffixes in query.same_subtrees
            ),
            trials=tuple(1 + len(slot.amounts) // 4 for slot in slots),
            parts=sum(1 + len(slot.amounts) for slot in slots),
            collective=bool(query.collective_traits),
            loose={kind: slot for kind, slot in samples.items() if not slot.granular},
            granular={kind: slot for kind, slot in samples.items() if slot.granular},
        )


def solve(
    task: Task, anchor: model.Anchor, steps: Steps, rng: random.Random | None = None
) -> Solutions:
    """Yield the candidates of an anchor, and None whenever the steps of a turn are used up.

    :param rng: shuffles the options of every slot
    """
    if is_plain(task, anchor):
        steps.used += 1
        if serves_alone(task, anchor):
            yield alone(task, anchor)
        return
    if not eligibility.root_passes(anchor.root, task.query):
        return
    if task.granular:
        servers = yield from _servers(task, anchor, steps)
    else:
        steps.used += _reach(anchor) * len(task.slots) // 2
        servers = eligibility.class_servers(task.slots, anchor)
    if not servers:
        return
    terminal: list[rules.OneOf] = []
    if task.collective:
        terminal = rules.collective_traits(task.query, task.slots, servers)
        steps.used += len(terminal) * _reach(anchor) // 8
        if not all(rule.slots for rule in terminal):
            return
    if task.granular or terminal or task.one_per_tree:
        domains = _domains(servers, rng)
        yield from _search(task, anchor, servers, domains, terminal, steps, rng)
        return
    # Each slot takes a class of its own, so none takes from another.
    if rng:
        servers = [rng.sample(found, len(found)) for found in servers]
    yield from _combinations([[provider.id for provider in found] for found in servers], steps)


def is_plain(task: Task, anchor: model.Anchor) -> bool:
    """Whether the root of the anchor is the only provider that its candidate could have."""
    return not task.granular and len(anchor.tree) == 1 and not anchor.lenders


def serves_alone(task: Task, anchor: model.Anchor) -> bool:
    """Whether the root of a plain anchor is a candidate."""
    root = anchor.root
    return eligibility.root_passes(root, task.query) and eligibility.serves_alone(root, task.slots)


def alone(task: Task, anchor: model.Anchor) -> model.Chosen:
    """The candidate of a plain anchor."""
    return (anchor.root.id,) * len(task.slots)


def _servers(
    task: Task, anchor: model.Anchor, steps: Steps
) -> Generator[None, None, list[list[model.Provider]]]:
    """The providers that could serve each slot; nothing at all if one of them has none."""
    reach = _reach(anchor)
    by_kind: dict[int, list[model.Provider]] = {}
    if task.loose:
        steps.used += reach * len(task.loose) // 2
        by_class = eligibility.class_servers(tuple(task.loose.values()), anchor)
        if not by_class:
            return []
        by_kind.update(zip(task.loose, by_class, strict=True))
    for kind, slot in task.granular.items():
        steps.used += reach * _weight(slot) // _PARTS_A_STEP + 1
        found = eligibility.servers(slot, anchor)
        if not found:
            return []
        by_kind[kind] = found
        if steps.used > steps.pause_at:
            yield None
    return [by_kind[kind] for kind in task.kinds]


def _reach(anchor: model.Anchor) -> int:
    """How many providers could serve a slot."""
    return len(anchor.tree) + len(anchor.lenders)


def _weight(slot: model.Slot) -> int:
    """How many parts the check of a provider for a slot has."""
    group = slot.group
    return 2 + len(slot.amounts) + (len(group.required) + len(group.member_of)) // 16


def _domains(servers: Sequence[Sequence[model.Provider]], rng: random.Random | None) -> Domains:
    """The ids of the providers that could serve each slot; one list for slots of one kind."""
    if rng:
        return [[provider.id for provider in rng.sample(found, len(found))] for found in servers]
    made: dict[int, list[int]] = {}
    for found in servers:
        if id(found) not in made:
            made[id(found)] = [provider.id for provider in found]
    return [made[id(found)] for found in servers]


def _combinations(domains: Domains, steps: Steps) -> Solutions:
    """Yield all combinations, where each is a result."""
    cost = CANDIDATE_COST * len(domains)
    for chosen in itertools.product(*domains):
        if steps.used > steps.pause_at:
            yield None
        steps.used += cost
        yield chosen


def _search(
    task: Task,
    anchor: model.Anchor,
    servers: Sequence[Sequence[model.Provider]],
    domains: Domains,
    terminal: Sequence[rules.OneOf],
    steps: Steps,
    rng: random.Random | None,
) -> Solutions:
    """All ways to bind the slots that could be bound together."""
    steps.used += _reach(anchor) * task.parts // 4
    contested = contest.contest_of(task.query, task.slots, task.kinds, servers, task.one_per_tree)
    if not task.subtrees:
        return _bindings(task, contested, domains, terminal, steps)
    several = len(task.subtrees) > 1
    if several and not contested.may_bind(dict(enumerate(domains)), contested.free, steps):
        return iter(())
    return _search_subtrees(task, anchor, contested, domains, terminal, steps, rng)


def _search_subtrees(
    task: Task,
    anchor: model.Anchor,
    contested: Contest,
    domains: Domains,
    terminal: Sequence[rules.OneOf],
    steps: Steps,
    rng: random.Random | None,
) -> Solutions:
    """Yield the results for one way to choose the tops of subtrees after another."""
    reach = (*anchor.tree, *anchor.lenders, *anchor.kin)
    steps.used += len(reach)
    parts = subtrees.split(
        domains,
        task.kinds,
        task.subtrees,
        subtrees.forest_of(reach),
        lambda options: contested.may_bind(options, contested.free, steps),
        steps,
        rng,
    )
    for narrowed in parts:
        if narrowed is None:
            yield None
            continue
        yield from _bindings(task, contested, narrowed, terminal, steps)


def _bindings(
    task: Task,
    contested: Contest,
    domains: Domains,
    terminal: Sequence[rules.OneOf],
    steps: Steps,
) -> Solutions:
    """All ways to bind the slots to options of these domains."""
    if contested.rules_out_nothing and not terminal:
        return _combinations(domains, steps)
    return _Search(task, contested, domains, terminal, steps).run()


class _Search:
    """The state of one depth-first search."""

    def __init__(
        self,
        task: Task,
        contested: Contest,
        domains: Domains,
        terminal: Sequence[rules.OneOf],
        steps: Steps,
    ):
        self._trials = task.trials
        self._contest = contested
        self._domains = domains
        self._steps = steps
        self._terminal = terminal
        self._free = dict(contested.free)
        self._busy: set[int] = set()
        # Root -> the provider of its tree that is bound, and how often.
        self._in_tree: dict[int, list[int]] = {}
        # Depth -> slot. Slots with few options first.
        self._order = sorted(range(len(domains)), key=lambda slot: len(domains[slot]))
        self._bound = [model.NOWHERE] * len(domains)
        depths = {slot: depth for depth, slot in enumerate(self._order)}
        # Depth -> rules that are decided there, and the steps that this takes.
        self._due: list[list[rules.OneOf]] = [[] for _ in domains]
        for rule in terminal:
            self._due[max(depths[slot] for slot in rule.slots)].append(rule)
        self._due_cost = [0] * len(domains)
        for depth, due in enumerate(self._due) if terminal else ():
            self._due_cost[depth] = sum(1 + len(rule.slots) // 8 for rule in due)
        steps.used += len(domains)

    def run(self) -> Solutions:
        """Yield all results."""
        steps, bound, busy, free = self._steps, self._bound, self._busy, self._free
        options = self._options()
        isolated = [slot in self._contest.isolated for slot in self._order]
        roots, order, due = self._contest.roots, self._order, self._due
        trials = self._trials
        last, cost = len(order) - 1, CANDIDATE_COST * len(order)
        if math.prod(map(len, options)) > TEST_AFTER and not self._may_bind_from(0):
            return
        test_after = TEST_AFTER and TEST_AFTER + sum(map(len, options))
        placed: list[tuple[int, Demands]] = [(model.NOWHERE, ())] * len(order)
        pending = [iter(options[0])] * len(order)
        depth = fruitless = 0
        while depth >= 0:
            if steps.used > steps.pause_at:
                yield None
            trial = trials[order[depth]]
            for option, demands in pending[depth]:
                steps.used += trial
                fruitless += 1
                if isolated[depth] and option in busy:
                    continue
                if roots and self._has_sibling(option):
                    continue
                if demands and not _fits(free, demands):
                    continue
                bound[order[depth]] = option
                if due[depth]:
                    steps.used += self._due_cost[depth]
                    if not all(rule.holds(bound) for rule in due[depth]):
                        continue
                if depth == last:
                    steps.used += cost
                    fruitless = 0
                    yield tuple(bound)
                    continue
                if isolated[depth]:
                    busy.add(option)
                if demands or roots:
                    self._take(option, demands)
                if fruitless > test_after and not self._may_bind_from(depth + 1):
                    if isolated[depth]:
                        busy.discard(option)
                    self._release(option, demands)
                    if steps.used > steps.pause_at:
                        yield None
                    continue
                placed[depth] = option, demands
                depth += 1
                pending[depth] = iter(options[depth])
                break
            else:
                depth -= 1
                if depth >= 0:
                    option, demands = placed[depth]
                    if isolated[depth]:
                        busy.discard(option)
                    if demands or roots:
                        self._release(option, demands)

    def _options(self) -> list[list[tuple[int, Demands]]]:
        """Depth -> the options of the slot with what they would take."""
        options = []
        for slot in self._order:
            demands = self._contest.demands[slot]
            options.append([(option, demands[option]) for option in self._domains[slot]])
        self._steps.used += sum(map(len, options)) // 8
        return options

    def _take(self, option: int, demands: Demands) -> None:
        for key, amount in demands:
            self._free[key] -= amount
        if self._contest.roots:
            self._in_tree.setdefault(self._contest.roots[option], []).append(option)

    def _release(self, option: int, demands: Demands) -> None:
        for key, amount in demands:
            self._free[key] += amount
        if self._contest.roots:
            self._in_tree[self._contest.roots[option]].pop()

    def _has_sibling(self, option: int) -> bool:
        """Whether another provider of the option's tree is bound already."""
        bound = self._in_tree.get(self._contest.roots[option])
        return bound is not None and bound[:1] not in ([], [option])

    def _may_bind_from(self, depth: int) -> bool:
        """Whether the slots from a depth on could be bound, as far as necessary conditions show."""
        left = self._left(depth)
        return (
            left is not None
            and contest.rules_may_hold(self._terminal, self._bound, left, self._steps)
            and self._contest.may_bind(left, self._free, self._steps)
        )

    def _left(self, depth: int) -> dict[int, list[int]] | None:
        """The options that the slots from a depth on still have; None if one has none."""
        left: dict[int, list[int]] = {}
        made: dict[tuple[int, int, bool], list[int]] = {}
        for slot in self._order[depth:]:
            domain, demands = self._domains[slot], self._contest.demands[slot]
            isolated = slot in self._contest.isolated
            key = id(domain), id(demands), isolated
            if key not in made:
                self._steps.used += len(domain) * self._trials[slot] // 2 + 1
                made[key] = [
                    option
                    for option in domain
                    if not (isolated and option in self._busy)
                    and _fits(self._free, demands[option])
                ]
            if not made[key]:
                return None
            left[slot] = made[key]
        return left


def _fits(free: contest.Amounts, demands: Demands) -> bool:
    for key, amount in demands:
        if free[key] < amount:
            return False
    return True
