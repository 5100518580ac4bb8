"""The candidates of one anchor: pure, lazy and exact, with counted work.

`solve` yields every way to bind the slots of a query to providers of an anchor. It does no more
work than the caller's requests for candidates need. In the order of the work:

1. `provider_checks` returns the eligible providers of each slot.
2. If no slot depends on another one, each combination of eligible providers is a candidate.
3. `group_policy` and `collective_traits` prepare the conditions that connect slots.
4. `same_subtree` divides the search into parts.
5. `backtracking` searches each part.

The work is counted in search steps (`search_steps.Steps`). When the steps exceed `pause_at`, the
solver yields None and continues on the next request; it ends only when the search is complete.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import random

from placement.candidates import (
    backtracking,
    collective_traits,
    group_policy,
    model,
    provider_checks,
    same_subtree,
)
from placement.candidates.backtracking import CANDIDATE_COST, Bindings
from placement.candidates.collective_traits import CollectiveTrait
from placement.candidates.group_policy import Contention
from placement.candidates.randomize import shuffled
from placement.candidates.same_subtree import SlotOptions
from placement.candidates.search_steps import Steps

# Parts of the check of a provider for a slot that count as one search step; see `_weight`.
_PARTS_PER_STEP = 4

# Slot -> its eligible providers. Slots of one kind share a list.
Eligible = Sequence[Sequence[model.Provider]]


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query with everything that does not depend on the anchor."""

    query: model.Query[int]
    slots: tuple[model.Slot, ...]
    # Slot -> a number. Slots of one kind have the same eligible providers.
    kinds: tuple[int, ...]
    # Whether a candidate may use at most one provider of each tree.
    one_per_tree: bool
    # The slots of each same_subtree.
    subtrees: tuple[frozenset[int], ...]
    # Slot -> the search steps for trying one option.
    trial_costs: tuple[int, ...]
    # The number of conditions on all slots together.
    parts: int
    # Whether the unsuffixed group has required traits.
    collective: bool
    # Kind -> a slot of this kind: the classes of the unsuffixed group, and the suffixed groups.
    unsuffixed: Mapping[int, model.Slot]
    suffixed: Mapping[int, model.Slot]

    @classmethod
    def of(cls, query: model.Query[int], one_per_tree: bool = False) -> 'PreparedQuery':
        """Prepare a query."""
        slots = model.slots_of(query)
        numbers: dict[tuple[object, ...], int] = {}
        kinds = tuple(numbers.setdefault(slot.kind, len(numbers)) for slot in slots)
        examples = dict(zip(kinds, slots, strict=True))
        return cls(
            query=query,
            slots=slots,
            kinds=kinds,
            one_per_tree=one_per_tree,
            subtrees=tuple(
                frozenset(n for n, slot in enumerate(slots) if slot.group.suffix in suffixes)
                for suffixes in query.same_subtrees
            ),
            trial_costs=tuple(1 + len(slot.amounts) // 4 for slot in slots),
            parts=sum(1 + len(slot.amounts) for slot in slots),
            collective=bool(query.collective_traits),
            unsuffixed={kind: slot for kind, slot in examples.items() if not slot.suffixed},
            suffixed={kind: slot for kind, slot in examples.items() if slot.suffixed},
        )


def solve(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    steps: Steps,
    rng: random.Random | None = None,
) -> Bindings:
    """Yield the bindings of an anchor, and None whenever `steps` exceed their pause.

    :param rng: shuffles the options of every slot
    """
    if is_single_provider(prepared, anchor):
        steps.used += 1
        if can_serve_alone(prepared, anchor):
            yield binding_of_root(prepared, anchor)
        return
    if not provider_checks.is_anchor(anchor.root, prepared.query):
        return
    if prepared.suffixed:
        eligible = yield from _eligible(prepared, anchor, steps)
    else:
        steps.used += _count(anchor) * len(prepared.slots) // 2
        eligible = provider_checks.eligible_for_classes(prepared.slots, anchor)
    if not eligible:
        return
    traits: list[CollectiveTrait] = []
    if prepared.collective:
        traits = collective_traits.conditions(prepared.query, prepared.slots, eligible)
        steps.used += len(traits) * _count(anchor) // 8
        if not all(trait.slots for trait in traits):
            return
    if prepared.suffixed or traits or prepared.one_per_tree:
        options = _options(eligible, rng)
        yield from _search(prepared, anchor, eligible, options, traits, steps, rng)
    else:  # each slot is another class, so no slot depends on another one
        yield from _combinations(_separate_options(eligible, rng), steps)


def is_single_provider(prepared: PreparedQuery, anchor: model.Anchor) -> bool:
    """Whether the anchor root is the only provider that a candidate could use."""
    return not prepared.suffixed and len(anchor.tree) == 1 and not anchor.sharing_providers


def can_serve_alone(prepared: PreparedQuery, anchor: model.Anchor) -> bool:
    """Whether the root of such an anchor is a candidate."""
    root = anchor.root
    return provider_checks.is_anchor(root, prepared.query) and provider_checks.can_serve_alone(
        root, prepared.slots
    )


def binding_of_root(prepared: PreparedQuery, anchor: model.Anchor) -> model.Binding:
    """Return the binding of all slots to the anchor root."""
    return (anchor.root.id,) * len(prepared.slots)


def _eligible(
    prepared: PreparedQuery, anchor: model.Anchor, steps: Steps
) -> Generator[None, None, Eligible]:
    """Return the eligible providers of each slot; an empty list if a slot has none.

    For queries with suffixed groups. Yields None to pause.
    """
    count = _count(anchor)
    by_kind: dict[int, Sequence[model.Provider]] = {}
    if prepared.unsuffixed:
        steps.used += count * len(prepared.unsuffixed) // 2
        by_class = provider_checks.eligible_for_classes(tuple(prepared.unsuffixed.values()), anchor)
        if not by_class:
            return []
        by_kind.update(zip(prepared.unsuffixed, by_class, strict=True))
    for kind, slot in prepared.suffixed.items():
        steps.used += count * _weight(slot) // _PARTS_PER_STEP + 1
        providers = provider_checks.eligible_providers(slot, anchor)
        if not providers:
            return []
        by_kind[kind] = providers
        if steps.used > steps.pause_at:
            yield None
    return [by_kind[kind] for kind in prepared.kinds]


def _count(anchor: model.Anchor) -> int:
    """Return the number of providers that could be eligible."""
    return len(anchor.tree) + len(anchor.sharing_providers)


def _weight(slot: model.Slot) -> int:
    """Return how many parts the check of a provider for a slot has."""
    group = slot.group
    return 2 + len(slot.amounts) + (len(group.required) + len(group.member_of)) // 16


def _options(eligible: Eligible, rng: random.Random | None) -> SlotOptions:
    """Return the ids of the eligible providers of each slot; one list for slots of one kind."""
    if rng:
        return _separate_options(eligible, rng)
    ids: dict[int, list[int]] = {}
    for found in eligible:
        if id(found) not in ids:
            ids[id(found)] = [provider.id for provider in found]
    return [ids[id(found)] for found in eligible]


def _separate_options(eligible: Eligible, rng: random.Random | None) -> SlotOptions:
    """Return the ids of the eligible providers of each slot, in random order if there is `rng`."""
    if rng:
        eligible = [shuffled(providers, rng) for providers in eligible]
    return [[provider.id for provider in providers] for providers in eligible]


def _combinations(options: SlotOptions, steps: Steps) -> Bindings:
    """Yield all combinations of options, where each of them is a candidate."""
    cost = CANDIDATE_COST * len(options)
    for binding in itertools.product(*options):
        if steps.used > steps.pause_at:
            yield None
        steps.used += cost
        yield binding


def _search(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    eligible: Eligible,
    options: SlotOptions,
    traits: Sequence[CollectiveTrait],
    steps: Steps,
    rng: random.Random | None,
) -> Bindings:
    """Return the bindings for slots that depend on each other."""
    steps.used += _count(anchor) * prepared.parts // 4
    contention = group_policy.contention_of(
        prepared.query, prepared.slots, prepared.kinds, eligible, prepared.one_per_tree
    )
    if not prepared.subtrees:
        return _bindings(prepared, contention, options, traits, steps)
    if len(prepared.subtrees) > 1 and not contention.may_bind(
        dict(enumerate(options)), contention.free, steps
    ):
        return iter(())
    return _search_subtrees(prepared, anchor, contention, options, traits, steps, rng)


def _search_subtrees(
    prepared: PreparedQuery,
    anchor: model.Anchor,
    contention: Contention,
    options: SlotOptions,
    traits: Sequence[CollectiveTrait],
    steps: Steps,
    rng: random.Random | None,
) -> Bindings:
    """Yield the bindings of one choice of subtrees after another."""
    providers = (*anchor.providers, *anchor.sharing_trees)
    steps.used += len(providers)
    division = same_subtree.Division(
        options,
        prepared.kinds,
        prepared.subtrees,
        same_subtree.forest_of(providers),
        lambda remaining: contention.may_bind(remaining, contention.free, steps),
        steps,
        rng,
    )
    for part in division.parts():
        if part is None:
            yield None
        else:
            yield from _bindings(prepared, contention, part, traits, steps)


def _bindings(
    prepared: PreparedQuery,
    contention: Contention,
    options: SlotOptions,
    traits: Sequence[CollectiveTrait],
    steps: Steps,
) -> Bindings:
    """Return the bindings of the slots to these options."""
    if contention.is_empty and not traits:
        return _combinations(options, steps)
    return backtracking.bindings(contention, options, traits, prepared.trial_costs, steps)
