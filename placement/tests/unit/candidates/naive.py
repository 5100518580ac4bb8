"""Candidates by the definition, as slowly as one likes.

Every combination of providers is formed, and all conditions are checked at the end, one by
one, as the documentation states them. Nothing here is shared with what it is compared to but
the words of `model`.
"""

from collections import Counter
from collections.abc import Iterator
import itertools

from placement.candidates import model


def solve(query: model.Query[int], anchor: model.Anchor) -> Iterator[model.Chosen]:
    """All candidates around an anchor."""
    root, slots = anchor.root, model.slots_of(query)
    if not query.root_required <= root.traits or query.root_forbidden & root.traits:
        return
    reach = (*anchor.tree, *anchor.lenders)
    for chosen in itertools.product(reach, repeat=len(slots)):
        bound = list(zip(slots, chosen, strict=True))
        if (
            all(_serves(slot, p, root) for slot, p in bound)
            and _collective(bound)
            and _isolated(query, bound)
            and all(_one_subtree(suffixes, bound, anchor) for suffixes in query.same_subtrees)
            and _fits(bound)
            and (query.nested or _one_a_tree(bound))
        ):
            yield tuple(p.id for p in chosen)


def _can(p: model.Provider, class_id: int, n: int) -> bool:
    s = p.stock.get(class_id)
    return s is not None and (
        s.used + n <= (s.total - s.reserved) * s.allocation_ratio
        and s.min_unit <= n <= s.max_unit
        and n % s.step_size == 0
    )


def _serves(slot: model.Slot, p: model.Provider, root: model.Provider) -> bool:
    g = slot.group
    inside = all(p.aggregates & aggs for aggs in g.member_of)
    near = p.root_id == root.id
    if not all(_can(p, class_id, n) for class_id, n in slot.amounts):
        return False
    if g.forbidden & p.traits or g.forbidden_aggregates & p.aggregates:
        return False
    if g.in_tree is not None and p.root_id != g.in_tree:
        return False
    if g.suffix:
        return inside and all(p.traits & any_set for any_set in g.required)
    if g.forbidden_aggregates & root.aggregates:
        return False
    if not near:
        return g.in_tree is None and inside
    return inside or all(root.aggregates & aggs for aggs in g.member_of)


def _collective(bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    loose = [(slot, p) for slot, p in bound if not slot.group.suffix]
    together = {t for _, p in loose for t in p.traits}
    return all(together & any_set for slot, _ in loose for any_set in slot.group.required)


def _isolated(query: model.Query[int], bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    apart = [p.id for slot, p in bound if slot.group.suffix]
    return not query.isolate or len(apart) == len(set(apart))


def _one_subtree(
    suffixes: frozenset[str], bound: list[tuple[model.Slot, model.Provider]], anchor: model.Anchor
) -> bool:
    parents = {p.id: p.parent_id for p in (*anchor.tree, *anchor.lenders, *anchor.kin)}
    lines = []
    for slot, p in bound:
        if slot.group.suffix in suffixes:
            line, at = [], p.id
            while at is not None:
                line.append(at)
                at = parents.get(at)
            lines.append(line)
    return any(all(line[0] in other for other in lines) for line in lines)


def _fits(bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    sums: Counter[tuple[model.Provider, int]] = Counter()
    stock = {p.id: p.stock for _, p in bound}
    for slot, p in bound:
        for class_id, n in slot.amounts:
            sums[p.id, class_id] += n
    return all(
        stock[id_][c].used + n <= stock[id_][c].capacity and n <= stock[id_][c].max_unit
        for (id_, c), n in sums.items()
    )


def _one_a_tree(bound: list[tuple[model.Slot, model.Provider]]) -> bool:
    giving = {p.id: p.root_id for slot, p in bound if slot.amounts}
    return len(giving) == len(set(giving.values()))
