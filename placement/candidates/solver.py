"""Finds the candidates of one anchor.

An *anchor* is a provider tree together with the sharing providers available to it. A *slot* is a
part of the query that exactly one provider serves. A *binding* assigns one provider to each slot.

`solve` yields all bindings of an anchor that satisfy the query. It is lazy: it computes a binding
only when the caller requests the next one. It has no side effects except that it spends its budget.
The stages are:

1. `provider_checks` returns the eligible providers of each slot.
2. If the slots are independent of each other, each combination of eligible providers is a
   candidate, and the next stages are skipped.
3. `joint_conditions` prepares the conditions that involve several slots.
4. `same_subtree` divides the search into parts.
5. `backtracking` searches each part.

The search ends when it is complete or when the budget is spent.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import random

from placement.candidates import backtracking, model, provider_checks, same_subtree
from placement.candidates.backtracking import CANDIDATE_COST
from placement.candidates.budget import UNLIMITED, Budget
from placement.candidates.joint_conditions import (
    CollectiveTrait,
    JointConditions,
    collective_traits,
    joint_conditions,
)
from placement.candidates.same_subtree import SlotOptions
from placement.candidates.selection import shuffled

# This many elementary checks of one provider against one slot count as one search step; see
# `PreparedQuery.check_counts`.
_CHECKS_PER_STEP = 4

# Slot -> its eligible providers. Slots of the same kind have the same list object.
Eligible = Sequence[Sequence[model.Provider]]


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query with the data that is the same for all anchors."""

    query: model.Query[int]
    slots: tuple[model.Slot, ...]
    # Slot -> an integer that identifies its kind. Slots of one kind have the same amounts and
    # conditions, and so the same eligible providers.
    kinds: tuple[int, ...]
    # Slot -> the sum of its amounts, each as a fraction of the amount that all slots request.
    sizes: tuple[float, ...]
    # group_policy=isolate: the slots that must be bound to different providers.
    isolated: frozenset[int]
    # Whether a candidate may use at most one provider of each tree.
    one_per_tree: bool
    # For each same_subtree parameter, the set of its slots.
    subtrees: tuple[frozenset[int], ...]
    # Slot -> the search steps that are counted each time the search tries an eligible provider.
    trial_costs: tuple[int, ...]
    # The total number of conditions of all slots, as a measure of the work to prepare a search.
    condition_count: int
    # Kind of suffixed groups -> the approximate number of elementary checks of one provider.
    check_counts: Mapping[int, int]
    # The search steps that are counted for a provider that could serve all slots of a query without
    # suffixed groups.
    single_provider_cost: int
    # Whether the unsuffixed group has required traits.
    collective: bool
    # Whether each combination of eligible providers is a candidate, because each slot requests a
    # different class, and there are no other conditions.
    independent: bool
    # Kind -> one slot of this kind. `unsuffixed` has one slot for each resource class of the
    # unsuffixed group, and `suffixed` has one for each distinct suffixed group.
    unsuffixed: Mapping[int, model.Slot]
    suffixed: Mapping[int, model.Slot]

    @classmethod
    def of(cls, query: model.Query[int], one_per_tree: bool = False) -> 'PreparedQuery':
        """Return the query with the data that is computed from it.

        :param one_per_tree: whether a candidate may use at most one provider of each tree
        """
        slots = model.slots_of(query)
        numbers: dict[tuple[object, ...], int] = {}
        kinds = tuple(numbers.setdefault(slot.kind, len(numbers)) for slot in slots)
        examples = dict(zip(kinds, slots, strict=True))
        totals: Counter[int] = Counter()
        for slot in slots:
            totals.update(dict(slot.amounts))
        set_checks = sum(_set_checks(slot.group) for slot in slots[:1])
        return cls(
            query=query,
            slots=slots,
            kinds=kinds,
            sizes=tuple(
                sum(n / totals[class_id] for class_id, n in slot.amounts) for slot in slots
            ),
            isolated=frozenset(
                number for number, slot in enumerate(slots) if query.isolate and slot.suffixed
            ),
            one_per_tree=one_per_tree,
            subtrees=tuple(
                frozenset(n for n, slot in enumerate(slots) if slot.group.suffix in suffixes)
                for suffixes in query.same_subtrees
            ),
            trial_costs=tuple(1 + len(slot.amounts) // 4 for slot in slots),
            condition_count=sum(1 + len(slot.amounts) for slot in slots),
            check_counts={
                kind: 2 + len(slot.amounts) + _set_checks(slot.group)
                for kind, slot in examples.items()
            },
            single_provider_cost=1 + (len(slots) // 2 + set_checks) // _CHECKS_PER_STEP,
            collective=bool(query.collective_traits),
            independent=not (
                one_per_tree or query.collective_traits or any(slot.suffixed for slot in slots)
            ),
            unsuffixed={kind: slot for kind, slot in examples.items() if not slot.suffixed},
            suffixed={kind: slot for kind, slot in examples.items() if slot.suffixed},
        )


def solve(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    budget: Budget,
    rng: random.Random | None = None,
) -> Iterator[model.Binding]:
    """Yield the bindings of an anchor, until the budget is spent.

    :param budget: receives the search steps of this anchor. If `left` is negative at the end,
        bindings may be missing
    :param rng: shuffles the order in which providers are tried; None for a fixed order
    """
    if is_single_provider(prepared, anchor):
        budget.spend(prepared.single_provider_cost)
        if can_serve_alone(prepared, anchor):
            yield binding_of_root(prepared, anchor)
        return
    if not provider_checks.is_anchor(anchor.root, prepared.query):
        return
    if prepared.suffixed:
        eligible = _eligible(prepared, anchor, budget)
    else:
        budget.spend(provider_count(anchor) * len(prepared.slots) // 2)
        eligible = provider_checks.eligible_for_classes(prepared.slots, anchor)
    if not eligible:
        return
    options = _options(eligible)
    if prepared.independent:
        yield from _combinations(options, budget, rng)
        return
    conditions = _conditions(prepared, anchor, eligible, budget)
    if conditions is None:
        return
    if prepared.subtrees:
        yield from _search_subtrees(prepared, anchor, conditions, options, budget, rng)
    else:
        yield from _bindings(prepared, conditions, options, budget, rng)


def bindings(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    steps: int = UNLIMITED,
    rng: random.Random | None = None,
) -> Generator[model.Binding, None, bool]:
    """Yield the bindings of an anchor until the search steps are spent.

    :param rng: shuffles the order in which providers are tried; None for a fixed order
    :returns: whether the search is complete
    """
    budget = Budget(steps)
    yield from solve(prepared, anchor, budget, rng)
    return budget.left >= 0


def without_search(
    prepared: PreparedQuery, anchor: model.Anchor
) -> tuple[model.Binding | None, int] | None:
    """Return the only binding of an anchor, if it can be found without a search.

    :returns: the binding, which is None if the anchor has none, and the number of search steps. If
        a search is necessary, None is returned instead
    """
    if is_single_provider(prepared, anchor):
        fits = can_serve_alone(prepared, anchor)
        return binding_of_root(prepared, anchor) if fits else None, prepared.single_provider_cost
    if not (prepared.independent and provider_checks.is_anchor(anchor.root, prepared.query)):
        return None
    steps = provider_count(anchor) * len(prepared.slots) // 2
    eligible = provider_checks.eligible_for_classes(prepared.slots, anchor)
    if not eligible:
        return None, steps
    ids = [providers[0].id for providers in eligible if len(providers) == 1]
    if len(ids) < len(eligible):
        return None
    return tuple(ids), steps + CANDIDATE_COST * len(ids)


def is_single_provider(prepared: PreparedQuery, anchor: model.Anchor) -> bool:
    """Whether the query has no suffixed group, and the anchor has no provider except its root."""
    return not prepared.suffixed and len(anchor.tree) == 1 and not anchor.sharing_providers


def can_serve_alone(prepared: PreparedQuery, anchor: model.Anchor) -> bool:
    """Whether the root provider alone satisfies the query.

    Call this only for anchors for which `is_single_provider` is true.

    PERF: this has the same result as calling `provider_checks.eligible_providers` for each slot,
    but takes a fraction of the time. In most deployments, most trees have only one provider.
    """
    root = anchor.root
    if not provider_checks.is_anchor(root, prepared.query):
        return False
    for slot in prepared.slots:
        ((class_id, amount),) = slot.amounts
        if not provider_checks.can_allocate(root, class_id, amount):
            return False
    group = prepared.slots[0].group
    return (
        (group.in_tree is None or group.in_tree == root.id)
        and provider_checks.satisfies_required(root.traits, group)
        and not provider_checks.is_forbidden(root, group)
        and provider_checks.satisfies_member_of(root, group)
    )


def binding_of_root(prepared: PreparedQuery, anchor: model.Anchor) -> model.Binding:
    """Return the binding that assigns the anchor root to all slots."""
    return (anchor.root.id,) * len(prepared.slots)


def _eligible(prepared: PreparedQuery, anchor: model.Anchor, budget: Budget) -> Eligible:
    """Return the eligible providers of each slot of a query with suffixed groups.

    :returns: slot -> its eligible providers. If any slot has no eligible provider, or if the budget
        is spent, an empty list is returned instead
    """
    count = provider_count(anchor)
    by_kind: dict[int, Sequence[model.Provider]] = {}
    same: dict[tuple[int, ...], Sequence[model.Provider]] = {}
    if prepared.unsuffixed:
        budget.spend(count * len(prepared.unsuffixed) // 2)
        by_class = provider_checks.eligible_for_classes(tuple(prepared.unsuffixed.values()), anchor)
        if not by_class:
            return []
        by_kind.update(zip(prepared.unsuffixed, by_class, strict=True))
    for kind, slot in prepared.suffixed.items():
        budget.spend(count * prepared.check_counts[kind] // _CHECKS_PER_STEP + 1)
        providers = provider_checks.eligible_providers(slot, anchor)
        if not providers:
            return []
        # Thousands of kinds can have the same eligible providers, and share one list then.
        ids = tuple(provider.id for provider in providers) if len(prepared.suffixed) > 16 else ()
        by_kind[kind] = same.setdefault(ids, providers) if ids else providers
        if budget.left < 0:
            return []
    return [by_kind[kind] for kind in prepared.kinds]


def provider_count(anchor: model.Anchor) -> int:
    """Return the number of providers of an anchor, including its sharing providers."""
    return len(anchor.tree) + len(anchor.sharing_providers)


def _set_checks(group: model.Group[int]) -> int:
    """Return the part of `PreparedQuery.check_counts` for the any-sets of a group."""
    any_sets = group.required + group.member_of
    return len(any_sets) // 4 + sum(map(len, any_sets)) // 32


def _options(eligible: Eligible) -> SlotOptions:
    """Return the ids of the eligible providers of each slot.

    Slots of the same kind have the same list object, which saves time and memory.
    """
    ids: dict[int, list[int]] = {}
    for found in eligible:
        if id(found) not in ids:
            ids[id(found)] = [provider.id for provider in found]
    return [ids[id(found)] for found in eligible]


def _combinations(
    options: SlotOptions, budget: Budget, rng: random.Random | None
) -> Iterator[model.Binding]:
    """Yield all combinations of options.

    Call this only for independent slots, for which each combination is a candidate.

    :param rng: shuffles the options of each slot; None to keep their order
    """
    cost = CANDIDATE_COST * len(options)
    for binding in itertools.product(
        *([shuffled(ids, rng) for ids in options] if rng else options)
    ):
        if budget.left < 0:
            return
        budget.spend(cost)
        yield binding


def _conditions(
    prepared: PreparedQuery, anchor: model.Anchor, eligible: Eligible, budget: Budget
) -> JointConditions | None:
    """Return the conditions of slots that depend on each other.

    :returns: None if the anchor has no candidate, because a required trait is missing, or if the
        budget is spent
    """
    traits: list[CollectiveTrait] = []
    if prepared.collective:
        traits = collective_traits(prepared.query, prepared.slots, eligible)
        budget.spend(len(traits) * provider_count(anchor) // 8)
        if not all(trait.slots for trait in traits):
            return None
    budget.spend(provider_count(anchor) * prepared.condition_count // 4)
    if budget.left < 0:
        return None
    return joint_conditions(
        prepared.slots,
        prepared.kinds,
        prepared.sizes,
        prepared.isolated,
        eligible,
        traits,
        prepared.one_per_tree,
    )


def _search_subtrees(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    conditions: JointConditions,
    options: SlotOptions,
    budget: Budget,
    rng: random.Random | None,
) -> Iterator[model.Binding]:
    """Divide the search by subtrees (see `same_subtree`), and yield the bindings of each part."""
    if len(prepared.subtrees) > 1 and not conditions.may_bind(
        dict(enumerate(options)), conditions.free, budget
    ):
        return
    providers = (*anchor.providers, *anchor.sharing_trees)
    budget.spend(len(providers))
    division = same_subtree.Division(
        options,
        prepared.kinds,
        prepared.subtrees,
        same_subtree.forest_of(providers),
        lambda remaining: conditions.may_bind(remaining, conditions.free, budget),
        budget,
        rng,
    )
    for part in division.parts():
        yield from _bindings(prepared, conditions, part, budget, rng)


def _bindings(
    prepared: PreparedQuery,
    conditions: JointConditions,
    options: SlotOptions,
    budget: Budget,
    rng: random.Random | None,
) -> Iterator[model.Binding]:
    """Return the bindings that use only these options."""
    if conditions.is_empty:
        return _combinations(options, budget, rng)
    return backtracking.bindings(conditions, options, prepared.trial_costs, budget, rng)
