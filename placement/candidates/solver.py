"""Finds the candidates of one anchor.

An *anchor* is a provider tree together with the sharing providers available to it. A *slot* is a
part of the query that exactly one provider serves. A *binding* assigns one provider to each slot.

`solve` returns all bindings of an anchor that satisfy the query. It is lazy: it computes a binding
only when the caller requests the next one. It has no side effects except that it spends its budget.
The stages are:

1. `eligibility` returns the eligible providers of each slot, which are its options.
2. If the slots are independent of each other, each combination of options is a candidate, and the
   next stages are skipped.
3. `same_subtree` divides the search into parts.
4. `backtracking` searches each part.

The search ends when it is complete or when the budget is spent.
"""

from collections.abc import Generator, Iterable, Iterator
import itertools
import random

from placement.candidates import backtracking, eligibility, model, same_subtree
from placement.candidates.backtracking import CANDIDATE_COST, CollectiveTrait, JointConditions
from placement.candidates.model import PreparedQuery, SlotOptions
from placement.candidates.selection import UNLIMITED, Budget, shuffled


def solve(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    budget: Budget,
    rng: random.Random | None = None,
) -> Iterable[model.Binding]:
    """Return the bindings of an anchor, until the budget is spent.

    :param budget: receives the search steps of this anchor. If it is spent at the end, bindings may
        be missing
    :param rng: shuffles the order in which providers are tried; None for a fixed order
    """
    budget.spend(prepared.check_cost * (len(anchor.tree) + len(anchor.sharing_providers)))
    if is_single_provider(prepared, anchor):
        return (binding_of_root(prepared, anchor),) if can_serve_alone(prepared, anchor) else ()
    if not eligibility.is_anchor(anchor.root, prepared.query):
        return ()
    options = _options(prepared, anchor)
    if not options:
        return ()
    if prepared.independent:
        return _combinations(options, budget, rng)
    traits = _collective_traits(prepared, anchor, options)
    if not all(trait.slots for trait in traits):
        return ()
    conditions = _conditions(prepared, anchor, options, traits)
    if prepared.subtrees:
        return _search_subtrees(anchor, conditions, options, budget, rng)
    return _search(conditions, options, budget, rng)


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
    return not budget.is_spent


def is_single_provider(prepared: PreparedQuery, anchor: model.Anchor) -> bool:
    """Whether the query has no suffixed group, and the anchor has no provider except its root."""
    return not prepared.suffixed and len(anchor.tree) == 1 and not anchor.sharing_providers


def can_serve_alone(prepared: PreparedQuery, anchor: model.Anchor) -> bool:
    """Whether the root provider alone satisfies the query.

    Call this only for anchors for which `is_single_provider` is true.

    PERF: this has the same result as calling `eligibility.eligible_providers` for each slot,
    but takes a fraction of the time. In most deployments, most trees have only one provider.
    """
    root = anchor.root
    if not eligibility.is_anchor(root, prepared.query):
        return False
    for slot in prepared.slots:
        ((class_id, amount),) = slot.amounts
        if not eligibility.can_allocate(root, class_id, amount):
            return False
    group = prepared.slots[0].group
    return (
        (group.in_tree is None or group.in_tree == root.id)
        and eligibility.satisfies_required(root.traits, group)
        and not eligibility.is_forbidden(root, group)
        and eligibility.satisfies_member_of(root, group)
    )


def binding_of_root(prepared: PreparedQuery, anchor: model.Anchor) -> model.Binding:
    """Return the binding that assigns the anchor root to all slots."""
    return (anchor.root.id,) * len(prepared.slots)


def _options(prepared: PreparedQuery, anchor: model.Anchor) -> SlotOptions:
    """Return the options of each slot; an empty list if a slot has no option."""
    eligible = {}
    if prepared.unsuffixed:
        slots = tuple(prepared.unsuffixed.values())
        by_class = eligibility.eligible_for_classes(slots, anchor)
        if not by_class:
            return []
        eligible = dict(zip(prepared.unsuffixed, by_class, strict=True))
    for kind, slot in prepared.suffixed.items():
        eligible[kind] = eligibility.eligible_providers(slot, anchor)
        if not eligible[kind]:
            return []
    # Thousands of kinds can have the same eligible providers, and share one tuple then.
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    by_kind = {}
    for kind, providers in eligible.items():
        ids = tuple([provider.id for provider in providers])
        by_kind[kind] = same.setdefault(ids, ids)
    return [by_kind[kind] for kind in prepared.kinds]


def _combinations(
    options: SlotOptions, budget: Budget, rng: random.Random | None
) -> Iterator[model.Binding]:
    """Yield all combinations of options.

    Call this only for independent slots, for which each combination is a candidate.

    :param rng: shuffles the options of each slot; None to keep their order
    """
    cost = CANDIDATE_COST * len(options)
    for binding in itertools.product(*[shuffled(ids, rng) for ids in options]):
        if budget.is_spent:
            return
        budget.spend(cost)
        yield binding


def _collective_traits(
    prepared: PreparedQuery, anchor: model.Anchor, options: SlotOptions
) -> list[CollectiveTrait]:
    """Return one condition for each any-set of traits that the unsuffixed group requires.

    If a condition has no slots, the anchor has no candidate.
    """
    result = []
    for any_set in prepared.query.collective_traits:
        having = frozenset(p.id for p in anchor.providers if not any_set.isdisjoint(p.traits))
        contributing = (
            number
            for number, slot in enumerate(prepared.slots)
            if not slot.suffixed and not having.isdisjoint(options[number])
        )
        result.append(CollectiveTrait(frozenset(contributing), having))
    return result


def _conditions(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    options: SlotOptions,
    traits: list[CollectiveTrait],
) -> JointConditions:
    """Return the conditions that the slots must satisfy together.

    :param traits: the conditions of `_collective_traits`
    """
    users: dict[int, dict[int, tuple[int, ...]]] = {}
    for number, amounts in enumerate(prepared.contended):
        for class_id, _ in amounts:
            users.setdefault(class_id, {})[id(options[number])] = options[number]
    providers = {provider.id: provider for provider in anchor.providers}
    return JointConditions(
        prepared=prepared,
        free={
            class_id: {
                id_: providers[id_].inventories[class_id].free
                for ids in different.values()
                for id_ in ids
            }
            for class_id, different in users.items()
        },
        roots={id_: p.root_id for id_, p in providers.items()} if prepared.one_per_tree else {},
        traits=traits,
    )


def _search_subtrees(
    anchor: model.Anchor,
    conditions: JointConditions,
    options: SlotOptions,
    budget: Budget,
    rng: random.Random | None,
) -> Iterator[model.Binding]:
    """Divide the search by subtrees (see `same_subtree`), and yield the bindings of each part."""
    prepared = conditions.prepared
    if len(prepared.subtrees) > 1 and not conditions.may_bind(
        dict(enumerate(options)), conditions.free, budget
    ):
        return
    providers = (*anchor.providers, *anchor.sharing_trees)
    budget.spend(len(providers))
    division = same_subtree.Division(
        options,
        prepared.subtrees,
        same_subtree.forest_of(providers),
        lambda remaining: conditions.may_bind(remaining, conditions.free, budget),
        budget,
        rng,
    )
    for part in division.parts():
        yield from _search(conditions, part, budget, rng)


def _search(
    conditions: JointConditions, options: SlotOptions, budget: Budget, rng: random.Random | None
) -> Iterator[model.Binding]:
    """Return the bindings that use only these options."""
    prepared = conditions.prepared
    if conditions.free or prepared.isolated or conditions.roots or conditions.traits:
        return backtracking.bindings(conditions, options, budget, rng)
    return _combinations(options, budget, rng)
