"""A simple, slow solver that defines which candidates are correct.

The solver forms every combination of providers, and then checks the conditions one by one, as the
documentation states them. It shares only the types of `model` with the real solver.
"""

from collections import Counter
from collections.abc import Iterator
import itertools

from placement.candidates import model


def solve(query: model.Query[int], anchor: model.Anchor) -> Iterator[model.Binding]:
    """Yield all bindings of an anchor."""
    root, slots = anchor.root, model.slots_of(query)
    if not query.root_required <= root.traits or query.root_forbidden & root.traits:
        return
    providers = (*anchor.tree, *anchor.sharing_providers)
    able = ([p for p in providers if can_serve(slot, p, root)] for slot in slots)
    for chosen in itertools.product(*able):
        bound = list(zip(slots, chosen, strict=True))
        if (
            _satisfies_collective_traits(bound)
            and _satisfies_group_policy(query, bound)
            and all(_is_one_subtree(suffixes, bound, anchor) for suffixes in query.same_subtrees)
            and _fits(bound)
            and (query.nested or _has_one_provider_per_tree(bound))
        ):
            yield tuple(p.id for p in chosen)


def _can_allocate(p: model.Provider, class_id: int, n: int) -> bool:
    s = p.inventories.get(class_id)
    return s is not None and (
        s.used + n <= (s.total - s.reserved) * s.allocation_ratio
        and s.min_unit <= n <= s.max_unit
        and n % s.step_size == 0
    )


def can_serve(slot: model.Slot, p: model.Provider, root: model.Provider) -> bool:
    g = slot.group
    inside = all(p.aggregates & aggs for aggs in g.member_of)
    if not all(_can_allocate(p, class_id, n) for class_id, n in slot.amounts):
        return False
    if g.forbidden & p.traits or g.forbidden_aggregates & p.aggregates:
        return False
    if g.in_tree is not None and p.root_id != g.in_tree:
        return False
    if g.suffix:
        return inside and all(p.traits & any_set for any_set in g.required)
    if g.forbidden_aggregates & root.aggregates:
        return False
    if p.root_id != root.id:
        return g.in_tree is None and inside
    return inside or all(root.aggregates & aggs for aggs in g.member_of)


def _satisfies_collective_traits(bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    unsuffixed = [(slot, p) for slot, p in bound if not slot.group.suffix]
    together = {t for _, p in unsuffixed for t in p.traits}
    return all(together & any_set for slot, _ in unsuffixed for any_set in slot.group.required)


def _satisfies_group_policy(
    query: model.Query[int], bound: list[tuple[model.Slot, model.Provider]]
) -> bool:
    ids = [p.id for slot, p in bound if slot.group.suffix]
    return not query.isolate or len(ids) == len(set(ids))


def _is_one_subtree(
    suffixes: frozenset[str], bound: list[tuple[model.Slot, model.Provider]], anchor: model.Anchor
) -> bool:
    parents = {
        p.id: p.parent_id for p in (*anchor.tree, *anchor.sharing_providers, *anchor.sharing_trees)
    }
    paths = []
    for slot, p in bound:
        if slot.group.suffix in suffixes:
            path, at = [], p.id
            while at is not None:
                path.append(at)
                at = parents.get(at)
            paths.append(path)
    return any(all(path[0] in other for other in paths) for path in paths)


def _fits(bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    sums: Counter[tuple[int, int]] = Counter()
    inventories = {p.id: p.inventories for _, p in bound}
    for slot, p in bound:
        for class_id, n in slot.amounts:
            sums[p.id, class_id] += n
    return all(
        inventories[id_][c].used + n <= inventories[id_][c].capacity
        and n <= inventories[id_][c].max_unit
        for (id_, c), n in sums.items()
    )


def _has_one_provider_per_tree(bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    roots = {p.id: p.root_id for slot, p in bound if slot.amounts}
    return len(roots) == len(set(roots.values()))
