"""What the slots of a query compete for around one anchor, and necessary conditions.

Slots compete for capacity that several of them may take from one provider and, with
group_policy=isolate, for the providers themselves. Before a search that may be long, and inside
of one that finds nothing, the conditions here recognize that slots cannot all be bound. Without
them, ten isolated groups on nine free devices would be tried in millions of ways before they fail.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import functools

from placement.candidates import flow, model, rules
from placement.candidates.steps import Steps

_UNTRACKED = 2**31

# What a slot takes from a provider that other slots may take from too: ((id, class), amount).
Demands = tuple[tuple[tuple[int, int], int], ...]
# (provider, class) -> an amount.
Amounts = Mapping[tuple[int, int], int]
# Slot -> the providers that it may still be bound to. Slots with the same options share a list.
Options = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Contest:
    """What is the same for all searches of an anchor."""

    # Slot -> provider -> the contested part of what it would take.
    demands: tuple[Mapping[int, Demands], ...]
    # Slot -> the amounts of classes that are contested anywhere.
    amounts: tuple[tuple[tuple[int, int], ...], ...]
    # (provider, class) -> what may be taken in all, where several slots may take.
    free: Amounts
    isolated: frozenset[int]
    # How many amounts of contested classes there are.
    size: int
    # Provider -> root, where no two providers of a tree may be bound.
    roots: Mapping[int, int]

    @property
    def rules_out_nothing(self) -> bool:
        """Whether every slot may be bound to each of its options, whatever the others are."""
        return not (self.free or self.isolated or self.roots)

    def may_bind(self, options: Options, free: Amounts, steps: Steps) -> bool:
        """Whether all these slots could be bound together.

        A slot with as many options as there are slots needs no test: the other slots leave one of
        its options untouched, whatever they are bound to.

        :param free: what may still be taken in all
        """
        steps.used += (len(options) + self.size) // 8 + 1
        few = {slot: ids for slot, ids in options.items() if len(ids) < len(options)}
        return self._may_be_isolated(few, steps) and self._may_be_supplied(few, free, steps)

    def _may_be_isolated(self, options: Options, steps: Steps) -> bool:
        """Whether there are enough different providers for the isolated slots."""
        counts: Counter[int] = Counter()
        different = {}
        for slot, providers in options.items():
            if slot in self.isolated:
                counts[id(providers)] += 1
                different[id(providers)] = providers
        if any(count > len(different[key]) for key, count in counts.items()):
            return False
        demands = [(count, different[key]) for key, count in counts.items()]
        return len(demands) < 2 or flow.feasible(demands, lambda _: 1, steps)

    def _may_be_supplied(self, options: Options, free: Amounts, steps: Steps) -> bool:
        """Whether there is enough free capacity for the sums that the slots take of each class."""
        wanted: dict[int, Counter[int]] = {}
        different = {id(providers): providers for providers in options.values()}
        for slot, providers in options.items():
            for class_id, amount in self.amounts[slot]:
                wanted.setdefault(class_id, Counter())[id(providers)] += amount
        for class_id, sums in wanted.items():
            demands = [(amount, different[key]) for key, amount in sums.items()]
            # Where only one slot may take, its amount is known to fit.
            capacity = functools.partial(_capacity, free, class_id)
            if not flow.feasible(demands, capacity, steps):
                return False
        return True


def _capacity(free: Amounts, class_id: int, provider_id: int) -> int:
    return free.get((provider_id, class_id), _UNTRACKED)


def rules_may_hold(
    terminal: Iterable[rules.OneOf], bound: rules.Bound, options: Options, steps: Steps
) -> bool:
    """Whether each rule holds already, or could once the slots of `options` are bound."""
    for rule in terminal:
        steps.used += 1 + len(rule.slots) // 8
        looked_at: set[int] = set()
        for slot in rule.slots:
            if slot not in options:
                if bound[slot] in rule.providers:
                    break
                continue
            providers = options[slot]
            if id(providers) in looked_at:
                continue
            looked_at.add(id(providers))
            steps.used += len(providers) // 16
            if not rule.providers.isdisjoint(providers):
                break
        else:
            return False
    return True


def contest_of(
    query: model.Query[int],
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    servers: Sequence[Sequence[model.Provider]],
    one_per_tree: bool,
) -> Contest:
    """What the slots compete for.

    :param kinds: slot -> a number, equal for slots that the same providers serve
    :param servers: slot -> the providers that could serve it
    """
    isolated = frozenset(
        number for number, slot in enumerate(slots) if slot.granular and query.isolate
    )
    contested = _contested(slots, kinds, isolated, servers)
    scarce = {class_id for _, class_id in contested}
    providers = (
        {provider.id: provider for found in _different(servers) for provider in found}
        if contested or one_per_tree
        else {}
    )
    demands: dict[int, dict[int, Demands]] = {}
    for number, kind in enumerate(kinds):
        if kind not in demands:
            demands[kind] = _demands(slots[number], servers[number], contested)
    amounts = tuple(
        tuple((class_id, amount) for class_id, amount in slot.amounts if class_id in scarce)
        for slot in slots
    )
    return Contest(
        demands=tuple(demands[kind] for kind in kinds),
        amounts=amounts,
        size=sum(map(len, amounts)),
        free={
            (id_, class_id): free_capacity(providers[id_], class_id) for id_, class_id in contested
        },
        isolated=isolated,
        roots={id_: p.root_id for id_, p in providers.items()} if one_per_tree else {},
    )


def _contested(
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    isolated: frozenset[int],
    servers: Sequence[Sequence[model.Provider]],
) -> set[tuple[int, int]]:
    """The (provider, class) pairs that more than one slot may take from."""
    wanted = Counter(class_id for slot in slots for class_id, _ in slot.amounts)
    if len(wanted) == wanted.total():
        return set()
    takers: Counter[tuple[int, int]] = Counter()
    isolated_takers = set()
    contested: set[tuple[int, int]] = set()
    seen: set[int] = set()
    for number, slot in enumerate(slots):
        again = kinds[number] in seen
        seen.add(kinds[number])
        for class_id, _ in slot.amounts:
            if wanted[class_id] == 1 or (again and number in isolated):
                continue
            keys = [(provider.id, class_id) for provider in servers[number]]
            if number in isolated:  # however many they are, only one of them gets the provider
                isolated_takers.update(keys)
            elif again:
                contested.update(keys)
            else:
                takers.update(keys)
    takers.update(isolated_takers)
    contested.update(key for key, count in takers.items() if count > 1)
    return contested


def _demands(
    slot: model.Slot, servers: Iterable[model.Provider], contested: set[tuple[int, int]]
) -> dict[int, Demands]:
    if not contested:
        return dict.fromkeys((provider.id for provider in servers), ())
    return {
        provider.id: tuple(
            ((provider.id, class_id), amount)
            for class_id, amount in slot.amounts
            if (provider.id, class_id) in contested
        )
        for provider in servers
    }


def _different(
    servers: Iterable[Sequence[model.Provider]],
) -> Iterable[Sequence[model.Provider]]:
    return {id(found): found for found in servers}.values()


def free_capacity(provider: model.Provider, class_id: int) -> int:
    """What all slots together may take of a class."""
    record = provider.stock[class_id]
    return min(record.capacity - record.used, record.max_unit)
