"""The search within one anchor: pure, lazy, exact, and counted.

`solve` yields every way to bind the slots of a query to providers in reach of an anchor. It
goes depth first with the slot that has the fewest options bound first, and does no more than
the caller pulls. Before a search that may be long, and whenever one has been fruitless for a
while, necessary conditions are tested: room left per class and, for isolated groups, a
matching of groups to providers. Without those, ten isolated groups on nine free devices would
be tried in millions of ways before they fail.

Every option that is tried costs a step of the request's `Effort`. When it is used up the
search ends as if there were nothing more to find, and the effort knows that it struck.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import math
import random

from placement.candidates import eligibility, model, rules

# Steps without a result, beyond one for each option of each slot, after which necessary
# conditions are tested at each step.
PATIENCE = 200
# What a candidate costs for each of its slots: it takes memory and has to be rendered.
CANDIDATE_COST = 4
_UNTRACKED = 2**31

# What a slot takes from a provider that other slots may take from too: ((id, class), amount).
Demands = tuple[tuple[tuple[int, int], int], ...]
Domains = list[list[int]]


class Effort:
    """How many steps a request may still make."""

    __slots__ = ('left', 'struck')

    def __init__(self, steps: int = -1):
        """:param steps: negative for no bound"""
        self.left: float = math.inf if steps < 0 else steps
        self.struck = False

    def spend(self, steps: int) -> bool:
        """Spend steps; tell whether that was still possible."""
        self.left -= steps
        if self.left < 0:
            self.struck = True
        return not self.struck


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
            loose={kind: slot for kind, slot in samples.items() if not slot.granular},
            granular={kind: slot for kind, slot in samples.items() if slot.granular},
        )


def solve(
    task: Task, anchor: model.Anchor, effort: Effort, rng: random.Random | None = None
) -> Iterator[model.Chosen]:
    """Yield the candidates of an anchor.

    :param rng: shuffles the options of every slot
    """
    if not eligibility.root_passes(anchor.root, task.query):
        return
    if not task.granular and len(anchor.tree) == 1 and not anchor.lenders:
        if eligibility.serves_alone(anchor.root, task.slots) and effort.spend(1):
            yield (anchor.root.id,) * len(task.slots)
        return
    servers = _servers(task, anchor)
    if rng:
        servers = [rng.sample(found, len(found)) for found in servers]
    if not servers:
        return
    terminal: list[rules.Terminal] = [*rules.collective_traits(task.query, task.slots, servers)]
    if not all(rule.slots for rule in terminal):
        return
    if not task.granular and not terminal and not task.one_per_tree:
        # Each slot takes a class of its own, so none takes from another: all combinations hold.
        yield from _combinations(servers, effort)
        return
    problem = _problem(task, anchor, servers)
    lines = rules.lines_of((*anchor.tree, *anchor.lenders, *anchor.kin)) if task.subtrees else {}
    domains = [[provider.id for provider in found] for found in servers]
    for narrowed, more in _narrow(domains, task.subtrees, lines, effort):
        yield from _Search(problem, narrowed, [*terminal, *more], effort).run()


def _combinations(
    servers: Sequence[Sequence[model.Provider]], effort: Effort
) -> Iterator[model.Chosen]:
    cost = CANDIDATE_COST * len(servers)
    for chosen in itertools.product(*([provider.id for provider in found] for found in servers)):
        if not effort.spend(cost):
            return
        yield chosen


def _servers(task: Task, anchor: model.Anchor) -> list[list[model.Provider]]:
    """Who could serve each slot; nothing at all when one of them finds nobody."""
    if not task.granular:
        return eligibility.class_servers(task.slots, anchor)
    by_kind: dict[int, list[model.Provider]] = {}
    if task.loose:
        by_class = eligibility.class_servers(tuple(task.loose.values()), anchor)
        if not by_class:
            return []
        by_kind.update(zip(task.loose, by_class, strict=True))
    for kind, slot in task.granular.items():
        found = eligibility.servers(slot, anchor)
        if not found:
            return []
        by_kind[kind] = found
    return [by_kind[kind] for kind in task.kinds]


def _narrow(
    domains: Domains,
    subtrees: Sequence[frozenset[int]],
    lines: Mapping[int, frozenset[int]],
    effort: Effort,
) -> Iterator[tuple[Domains, list[rules.Terminal]]]:
    """Split a search by the tops of the same_subtrees.

    The providers of a same_subtree have exactly one among them that all others are below. To
    pick it first leaves each slot the options of one subtree, and no result is found twice.
    """
    if not subtrees:
        yield domains, []
        return
    slots, rest = subtrees[0], subtrees[1:]
    tops = dict.fromkeys(itertools.chain.from_iterable(domains[slot] for slot in slots))
    for top in tops:
        if not effort.spend(1):
            return
        narrowed = list(domains)
        for slot in slots:
            narrowed[slot] = [option for option in domains[slot] if top in lines[option]]
        if all(narrowed[slot] for slot in slots):
            rule = rules.OneOf(slots, frozenset((top,)))
            for final, more in _narrow(narrowed, rest, lines, effort):
                yield final, [rule, *more]


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is the same for all searches of an anchor."""

    # Slot -> provider -> what is contested of what it would take.
    demands: tuple[Mapping[int, Demands], ...]
    # Slot -> the amounts of classes that are contested anywhere.
    amounts: tuple[tuple[tuple[int, int], ...], ...]
    # (provider, class) -> what may be taken in all, where several slots may take.
    room: Mapping[tuple[int, int], int]
    isolated: frozenset[int]
    # Provider -> root, where no two providers of a tree may be bound.
    homes: Mapping[int, int]


def _problem(
    task: Task, anchor: model.Anchor, servers: Sequence[Sequence[model.Provider]]
) -> _Problem:
    isolated = frozenset(
        number for number, slot in enumerate(task.slots) if slot.granular and task.query.isolate
    )
    takers: Counter[tuple[int, int]] = Counter()
    isolated_takers = set()
    for number, slot in enumerate(task.slots):
        for class_id, _ in slot.amounts:
            keys = [(provider.id, class_id) for provider in servers[number]]
            if number not in isolated:
                takers.update(keys)
            else:  # however many they are, one of them gets the provider
                isolated_takers.update(keys)
    takers.update(isolated_takers)
    contested = {key for key, count in takers.items() if count > 1}
    scarce = {class_id for _, class_id in contested}
    providers = {provider.id: provider for found in servers for provider in found}
    demands: dict[int, dict[int, Demands]] = {}
    for number, kind in enumerate(task.kinds):
        if kind not in demands:
            amounts = task.slots[number].amounts
            demands[kind] = {
                provider.id: tuple(
                    ((provider.id, class_id), amount)
                    for class_id, amount in amounts
                    if (provider.id, class_id) in contested
                )
                for provider in servers[number]
            }
    return _Problem(
        demands=tuple(demands[kind] for kind in task.kinds),
        amounts=tuple(
            tuple((class_id, amount) for class_id, amount in slot.amounts if class_id in scarce)
            for slot in task.slots
        ),
        room={(id_, class_id): _room(providers[id_], class_id) for id_, class_id in contested},
        isolated=isolated,
        homes={id_: p.root_id for id_, p in providers.items()} if task.one_per_tree else {},
    )


def _room(provider: model.Provider, class_id: int) -> int:
    record = provider.stock[class_id]
    return min(record.capacity - record.used, record.max_unit)


class _Search:
    """The state of one depth-first search."""

    def __init__(
        self,
        problem: _Problem,
        domains: Domains,
        terminal: Sequence[rules.Terminal],
        effort: Effort,
    ):
        self._problem = problem
        self._domains = domains
        self._effort = effort
        self._terminal = terminal
        self._room = dict(problem.room)
        self._busy: set[int] = set()
        # Depth -> slot. Slots with few options first.
        self._order = sorted(range(len(domains)), key=lambda slot: len(domains[slot]))
        self._bound = [model.NOWHERE] * len(domains)
        depths = {slot: depth for depth, slot in enumerate(self._order)}
        # Depth -> rules that can be told there.
        self._due: list[list[rules.Terminal]] = [[] for _ in domains]
        for rule in terminal:
            self._due[max(depths[slot] for slot in rule.slots)].append(rule)

    def run(self) -> Iterator[model.Chosen]:
        """Yield all results."""
        effort, bound, busy, room = self._effort, self._bound, self._busy, self._room
        options = [
            [(option, self._problem.demands[slot][option]) for option in self._domains[slot]]
            for slot in self._order
        ]
        isolated = [slot in self._problem.isolated for slot in self._order]
        homes, order, due = self._problem.homes, self._order, self._due
        last, cost = len(order) - 1, CANDIDATE_COST * len(order)
        if math.prod(map(len, options)) > PATIENCE and not self._hopeful(0):
            return
        patience = PATIENCE and PATIENCE + sum(map(len, options))
        placed: list[tuple[int, Demands]] = [(model.NOWHERE, ())] * len(order)
        pending = [iter(options[0])] * len(order)
        depth = fruitless = 0
        while depth >= 0:
            for option, demands in pending[depth]:
                effort.left -= 1
                fruitless += 1
                if isolated[depth] and option in busy:
                    continue
                if demands and not _has_room(room, demands):
                    continue
                if homes and self._has_sibling(depth, option):
                    continue
                bound[order[depth]] = option
                if due[depth] and not all(rule.holds(bound) for rule in due[depth]):
                    continue
                if depth == last:
                    if not effort.spend(cost):
                        return
                    fruitless = 0
                    yield tuple(bound)
                    continue
                self._take(depth, option, demands)
                if fruitless > patience and not self._hopeful(depth + 1):
                    self._give_back(depth, option, demands)
                    continue
                placed[depth] = option, demands
                depth += 1
                pending[depth] = iter(options[depth])
                break
            else:
                depth -= 1
                if not effort.spend(0):
                    return
                if depth >= 0:
                    self._give_back(depth, *placed[depth])

    def _take(self, depth: int, option: int, demands: Demands) -> None:
        if self._order[depth] in self._problem.isolated:
            self._busy.add(option)
        for key, amount in demands:
            self._room[key] -= amount

    def _give_back(self, depth: int, option: int, demands: Demands) -> None:
        if self._order[depth] in self._problem.isolated:
            self._busy.discard(option)
        for key, amount in demands:
            self._room[key] += amount

    def _has_sibling(self, depth: int, option: int) -> bool:
        """Whether another provider of the option's tree is bound already."""
        homes = self._problem.homes
        home = homes[option]
        for slot in self._order[:depth]:
            other = self._bound[slot]
            if other != option and homes[other] == home:
                return True
        return False

    def _hopeful(self, depth: int) -> bool:
        """Whether what is not bound yet could be, as far as necessary conditions tell."""
        left: dict[int, list[int]] = {}
        for slot in self._order[depth:]:
            demands = self._problem.demands[slot]
            isolated = slot in self._problem.isolated
            left[slot] = [
                option
                for option in self._domains[slot]
                if not (isolated and option in self._busy)
                and _has_room(self._room, demands[option])
            ]
            if not left[slot]:
                return False
        if not self._effort.spend(sum(map(len, left.values()))):
            return False
        return self._rules_may_hold(left) and self._can_be_isolated(left) and self._can_be_had(left)

    def _rules_may_hold(self, left: Mapping[int, list[int]]) -> bool:
        for rule in self._terminal:
            if not isinstance(rule, rules.OneOf):
                continue
            if not any(
                not rule.providers.isdisjoint(left[slot])
                if slot in left
                else self._bound[slot] in rule.providers
                for slot in rule.slots
            ):
                return False
        return True

    def _can_be_isolated(self, left: Mapping[int, list[int]]) -> bool:
        wants = Counter(
            tuple(options) for slot, options in left.items() if slot in self._problem.isolated
        )
        flows = [(count, options) for options, count in wants.items()]
        return len(wants) == 0 or rules.can_flow(flows, lambda _: 1)

    def _can_be_had(self, left: Mapping[int, list[int]]) -> bool:
        """Whether there is room for the sums that the slots want of each class."""
        wants: dict[int, Counter[tuple[int, ...]]] = {}
        for slot, options in left.items():
            for class_id, amount in self._problem.amounts[slot]:
                wants.setdefault(class_id, Counter())[tuple(options)] += amount
        for class_id, counted in wants.items():
            # Where only one slot may take, its amount is known to fit.
            room = {
                option: self._room.get((option, class_id), _UNTRACKED)
                for options in counted
                for option in options
            }
            if not rules.can_flow([(n, options) for options, n in counted.items()], room):
                return False
        return True


def _has_room(room: Mapping[tuple[int, int], int], demands: Demands) -> bool:
    for key, amount in demands:
        if room[key] < amount:
            return False
    return True
