"""Who may serve what: the conditions on one provider, one slot and one anchor.

Pure functions. A suffixed group has to be satisfied by a provider alone, whatever the anchor;
what serves a class of the group without suffix also depends on the root of the anchor, whose
aggregates span its tree.
"""

from collections.abc import Iterable, Sequence

from placement.candidates import model


def can_serve(provider: model.Provider, class_id: int, amount: int) -> bool:
    """Whether the provider has the amount to give, beside what is in use."""
    record = provider.stock.get(class_id)
    if record is None:
        return False
    _, total, reserved, min_unit, max_unit, step_size, ratio, used = record
    return (
        min_unit <= amount <= max_unit
        and used + amount <= (total - reserved) * ratio
        and amount % step_size == 0
    )


def in_aggregates(provider: model.Provider, group: model.Group[int]) -> bool:
    """Whether the provider itself is where the group wants it: in one aggregate of each set."""
    for any_set in group.member_of:
        if any_set.isdisjoint(provider.aggregates):
            return False
    return True


def has_traits(traits: frozenset[int], group: model.Group[int]) -> bool:
    """Whether these traits, of one provider or of several together, satisfy the group."""
    for any_set in group.required:
        if any_set.isdisjoint(traits):
            return False
    return True


def banned(provider: model.Provider, group: model.Group[int]) -> bool:
    """Whether the provider is in a forbidden aggregate or has a forbidden trait."""
    return not (
        group.forbidden_aggregates.isdisjoint(provider.aggregates)
        and group.forbidden.isdisjoint(provider.traits)
    )


def satisfies(provider: model.Provider, slot: model.Slot) -> bool:
    """Whether the provider alone satisfies a suffixed group."""
    group = slot.group
    if group.in_tree is not None and group.in_tree != provider.root_id:
        return False
    for class_id, amount in slot.amounts:
        if not can_serve(provider, class_id, amount):
            return False
    return (
        has_traits(provider.traits, group)
        and not banned(provider, group)
        and in_aggregates(provider, group)
    )


def lends(provider: model.Provider, group: model.Group[int]) -> bool:
    """Whether a sharing provider may serve the group without suffix in trees other than its own."""
    # Being linked to a tree whose root is in the aggregates is not enough to lend to it.
    return group.in_tree is None and not banned(provider, group) and in_aggregates(provider, group)


def may_lend(provider: model.Provider, slot: model.Slot) -> bool:
    """Whether a sharing provider could serve the slot in trees other than its own."""
    if slot.granular:
        return satisfies(provider, slot)
    ((class_id, amount),) = slot.amounts
    return can_serve(provider, class_id, amount) and lends(provider, slot.group)


def root_passes(root: model.Provider, query: model.Query[int]) -> bool:
    """Whether candidates may be built around the root."""
    return query.root_required <= root.traits and query.root_forbidden.isdisjoint(root.traits)


def servers(slot: model.Slot, anchor: model.Anchor) -> list[model.Provider]:
    """All providers that could serve the slot for the anchor, if it were the only one."""
    if not slot.granular:
        found = class_servers((slot,), anchor)
        return found[0] if found else []
    reach = (*anchor.tree, *anchor.lenders)
    return [provider for provider in reach if satisfies(provider, slot)]


def class_servers(slots: Sequence[model.Slot], anchor: model.Anchor) -> list[list[model.Provider]]:
    """All providers that could serve each class of the group without suffix for the anchor.

    :param slots: slots of that group
    :returns: nothing at all when one of the slots finds nobody
    """
    group = slots[0].group
    if not group.forbidden_aggregates.isdisjoint(anchor.root.aggregates):
        return []
    able = [*anchor.tree, *anchor.lenders]
    choosy = group.forbidden or group.forbidden_aggregates or group.member_of
    if choosy or group.in_tree is not None:
        able = _able_members(group, anchor)
        able += [provider for provider in anchor.lenders if lends(provider, group)]
    found = []
    for slot in slots:
        ((class_id, amount),) = slot.amounts
        providers = [provider for provider in able if can_serve(provider, class_id, amount)]
        if not providers:
            return []
        found.append(providers)
    return found


def _able_members(group: model.Group[int], anchor: model.Anchor) -> list[model.Provider]:
    """Providers of the anchor's tree that have what the group asks for beside resources."""
    if group.in_tree is not None and group.in_tree != anchor.root.id:
        return []
    spanned = in_aggregates(anchor.root, group)
    return [
        provider
        for provider in anchor.tree
        if not banned(provider, group) and (spanned or in_aggregates(provider, group))
    ]


def serves_alone(provider: model.Provider, slots: Iterable[model.Slot]) -> bool:
    """Whether a provider that is a whole tree serves all classes of the group without suffix.

    The same as asking for `servers` of each slot, and several times faster: most trees of
    most clouds are one provider.
    """
    group = None
    for slot in slots:
        group = slot.group
        ((class_id, amount),) = slot.amounts
        if not can_serve(provider, class_id, amount):
            return False
    return (
        group is not None
        and (group.in_tree is None or group.in_tree == provider.id)
        and has_traits(provider.traits, group)
        and not banned(provider, group)
        and in_aggregates(provider, group)
    )
