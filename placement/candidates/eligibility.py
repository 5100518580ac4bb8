"""Checks whether one provider satisfies resources, required, member_of and in_tree of a group.

The functions have no side effects. A suffixed group must be satisfied by one provider alone. The
unsuffixed group has two differences:

* The aggregates of the root apply to all providers of its tree.
* The providers that serve the group must have its required traits together, so this module does not
  check these traits for a single provider (see `backtracking`).

`model` defines the terms anchor and slot.
"""

from collections.abc import Collection, Sequence

from placement.candidates import model

# `scarce_first` makes at most this many checks of one provider against one slot.
_SAMPLE_CHECKS = 50_000


def can_allocate(provider: model.Provider, class_id: int, amount: int) -> bool:
    """Whether the provider has enough free capacity for the amount, and its inventory permits it.

    PERF: this function duplicates the rules of `placement.capacity`. If it called the three
    functions of that module, the search of 1,000 single-provider trees would take 11 % longer
    (2026-11). A test checks that the results are the same.
    """
    inventory = provider.inventories.get(class_id)
    if inventory is None:
        return False
    _, total, reserved, min_unit, max_unit, step_size, ratio, used = inventory
    return (
        min_unit <= amount <= max_unit
        and used + amount <= (total - reserved) * ratio
        and amount % step_size == 0
    )


def satisfies_member_of(provider: model.Provider, group: model.Group[int]) -> bool:
    """Whether the provider itself is in at least one aggregate of each set of member_of."""
    for any_set in group.member_of:
        if any_set.isdisjoint(provider.aggregates):
            return False
    return True


def satisfies_required(traits: frozenset[int], group: model.Group[int]) -> bool:
    """Whether these traits include at least one trait of each set of required traits."""
    for any_set in group.required:
        if any_set.isdisjoint(traits):
            return False
    return True


def is_forbidden(provider: model.Provider, group: model.Group[int]) -> bool:
    """Whether the provider is in a forbidden aggregate or has a forbidden trait."""
    return not (
        group.forbidden_aggregates.isdisjoint(provider.aggregates)
        and group.forbidden.isdisjoint(provider.traits)
    )


def satisfies_suffixed_group(provider: model.Provider, slot: model.Slot) -> bool:
    """Whether the provider alone satisfies a suffixed group."""
    group = slot.group
    if group.in_tree is not None and group.in_tree != provider.root_id:
        return False
    for class_id, amount in slot.amounts:
        if not can_allocate(provider, class_id, amount):
            return False
    return (
        satisfies_required(provider.traits, group)
        and not is_forbidden(provider, group)
        and satisfies_member_of(provider, group)
    )


def may_serve_other_trees(provider: model.Provider, group: model.Group[int]) -> bool:
    """Whether a sharing provider may serve the unsuffixed group in a candidate of another tree.

    The sharing provider itself must satisfy member_of, because the aggregates of a root apply only
    to the providers of its own tree. If the group has in_tree, it may use only providers of the
    anchor's own tree.
    """
    return (
        group.in_tree is None
        and not is_forbidden(provider, group)
        and satisfies_member_of(provider, group)
    )


def can_serve_other_trees(provider: model.Provider, slot: model.Slot) -> bool:
    """Whether a sharing provider can serve the slot in a candidate of another tree."""
    if slot.suffixed:
        return satisfies_suffixed_group(provider, slot)
    ((class_id, amount),) = slot.amounts
    return can_allocate(provider, class_id, amount) and may_serve_other_trees(provider, slot.group)


def is_anchor(root: model.Provider, query: model.Query[int]) -> bool:
    """Whether the root satisfies root_required."""
    return query.root_required <= root.traits and query.root_forbidden.isdisjoint(root.traits)


def eligible_providers(slot: model.Slot, anchor: model.Anchor) -> list[model.Provider]:
    """Return the providers of an anchor that could serve the slot if it were the only slot."""
    if not slot.suffixed:
        eligible = eligible_for_classes((slot,), anchor)
        return eligible[0] if eligible else []
    return [provider for provider in anchor.providers if satisfies_suffixed_group(provider, slot)]


def eligible_for_classes(
    slots: Sequence[model.Slot], anchor: model.Anchor
) -> list[list[model.Provider]]:
    """Return, for each resource class of the unsuffixed group, the providers that could serve it.

    :param slots: slots of the unsuffixed group
    :returns: one list of providers for each slot. If any slot has no eligible provider, an empty
        list is returned instead
    """
    providers = permitted_providers(slots[0].group, anchor)
    eligible = []
    for slot in slots:
        ((class_id, amount),) = slot.amounts
        found = [
            provider
            for provider in providers
            # PERF: most sharing providers have one class, so the look-up saves most calls (1.6 of
            # 21 ms for 1,000 trees with sharing providers, 2026-11).
            if class_id in provider.inventories and can_allocate(provider, class_id, amount)
        ]
        if not found:
            return []
        eligible.append(found)
    return eligible


def permitted_providers(group: model.Group[int], anchor: model.Anchor) -> Sequence[model.Provider]:
    """Return the providers of an anchor that may serve a class of the unsuffixed group.

    These providers satisfy all conditions of the group that apply to a single provider, except for
    the requested amounts.
    """
    if not group.forbidden_aggregates.isdisjoint(anchor.root.aggregates):
        return []
    if not (
        group.forbidden
        or group.forbidden_aggregates
        or group.member_of
        or group.in_tree is not None
    ):
        return anchor.providers
    return [
        *_filtered_tree(group, anchor),
        *(p for p in anchor.sharing_providers if may_serve_other_trees(p, group)),
    ]


def _filtered_tree(group: model.Group[int], anchor: model.Anchor) -> list[model.Provider]:
    if group.in_tree is not None and group.in_tree != anchor.root.id:
        return []
    root_satisfies = satisfies_member_of(anchor.root, group)
    return [
        provider
        for provider in anchor.tree
        if not is_forbidden(provider, group)
        and (root_satisfies or satisfies_member_of(provider, group))
    ]


def scarce_first(
    slots: Collection[model.Slot], anchors: Sequence[model.Anchor]
) -> list[model.Slot]:
    """Return the slots, sorted by the number of anchors that can serve them, lowest first."""
    sample, checks = [], 0
    for anchor in anchors:
        checks += len(slots) * len(anchor.providers)
        if checks > _SAMPLE_CHECKS:
            break
        sample.append(anchor)

    def key(slot: model.Slot) -> tuple[int, int]:
        count = sum(bool(eligible_providers(slot, anchor)) for anchor in sample)
        # On a tie, the slot with the largest amount is first: large amounts (for example MEMORY_MB)
        # exceed the free capacity more often than small ones (for example VCPU).
        return count, -max((amount for _, amount in slot.amounts), default=0)

    return sorted(slots, key=key)
