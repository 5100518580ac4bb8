"""Splits a query into its conditions, and builds queries from some of these conditions.

A condition is the smallest part of a query that an operator can leave out: one requested amount,
one required trait, or one aggregate expression, for example. `placement.candidates.request` checks
the query first, so this module expects a valid query.

A relaxed amount still needs an inventory of its class. In a search, this is the condition that the
provider can allocate one unit of another class, which stands for the presence of the inventory, and
of which each provider with the inventory has practically unlimited capacity. The ids of these
classes are negative.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from placement import capacity, grammar
from placement.candidates import model, request

# The kinds of conditions of groups: the keys without the suffix and the names.
RESOURCES, REQUIRED, FORBIDDEN = 'resources', 'required', 'required:!'
MEMBER_OF, FORBIDDEN_AGGREGATES, IN_TREE = 'member_of', 'member_of:!', 'in_tree'
# Those of the whole query. Every single provider satisfies a condition of the last two kinds.
ROOT_REQUIRED, ROOT_FORBIDDEN = 'root_required', 'root_required:!'
SAME_SUBTREE, GROUP_POLICY = 'same_subtree', 'group_policy'

# The inventory of each class that stands for the presence of another one.
_UNLIMITED = model.ProviderInventory(-1, capacity.MAX_INT, 0, 1, capacity.MAX_INT, 1, 1.0, 0)

# The kind of a condition, its names, and the query that has only this condition.
_Part = tuple[str, Collection[str], model.Query[str]]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a query.

    :ivar key: the key, as the guide of `placement-manage explain` defines it
    :ivar names: the classes, traits, UUIDs, or suffixes, sorted
    :ivar part: the query that has only this condition
    """

    key: str
    kind: str
    names: tuple[str, ...]
    part: model.Query[int]

    @property
    def suffix(self) -> str | None:
        """The suffix of the request group; None if the condition is not part of a group."""
        return self.part.groups[0].suffix if self.part.groups else None

    @property
    def amount(self) -> tuple[int, int]:
        """The resource class and the amount of a RESOURCES condition."""
        return self.part.groups[0].amounts[0]

    @property
    def relaxed(self) -> model.Query[int]:
        """The query that remains of `part` if the condition is relaxed."""
        if self.kind != RESOURCES:
            return model.Query(())
        amounts = ((_presence(self.amount[0]), 1),)
        return model.Query((model.Group(self.suffix or '', amounts),))


Conditions = Sequence[Condition]


def conditions_of(
    pairs: request.Pairs, query: model.Query[str], ids: request.Ids
) -> tuple[Condition, ...]:
    """Return the conditions of a query without duplicates, in the order of its groups.

    :param pairs: the (key, value) pairs of the query string
    :param query: the result of `request.parse`
    :param ids: the ids of all names of the query
    """
    conditions = (
        Condition(_key(kind, names, part), kind, tuple(sorted(names)), request.with_ids(part, ids))
        for kind, names, part in _parts(pairs, query)
    )
    return tuple(dict.fromkeys(conditions))


def _key(kind: str, names: Collection[str], part: model.Query[str]) -> str:
    name, _, mark = kind.partition(':')
    name += ''.join(group.suffix for group in part.groups)
    if kind in (IN_TREE, GROUP_POLICY):
        return name
    any_of = grammar.ANY_OF if len(names) > 1 and kind != SAME_SUBTREE else ''
    return f'{name}:{mark}{any_of}{",".join(sorted(names))}'


def _parts(pairs: request.Pairs, query: model.Query[str]) -> Iterator[_Part]:
    for group in query.groups:
        member_of = [value for key, value in pairs if key == f'{MEMBER_OF}{group.suffix}']
        yield from _parts_of_group(group, member_of)
    for name in sorted(query.root_required):
        yield ROOT_REQUIRED, (name,), model.Query((), root_required=frozenset((name,)))
    for name in sorted(query.root_forbidden):
        yield ROOT_FORBIDDEN, (name,), model.Query((), root_forbidden=frozenset((name,)))
    for key, value in pairs:
        if key == SAME_SUBTREE:
            suffixes = request.parse_same_subtree(value)
            yield SAME_SUBTREE, suffixes, model.Query((), same_subtrees=(suffixes,))
    if query.isolate:
        yield GROUP_POLICY, (), model.Query((), isolate=True)


def _parts_of_group(group: model.Group[str], member_of: Iterable[str]) -> Iterator[_Part]:
    """Yield the conditions of a group.

    :param member_of: the values of this parameter. The group has the UUIDs of all forbidden ones in
        one set
    """

    def part(**attributes: Any) -> model.Query[str]:
        return model.Query((model.Group(group.suffix, **attributes),))

    for name, amount in group.amounts:
        yield RESOURCES, (name,), part(amounts=((name, amount),))
    for names in group.required:
        yield REQUIRED, names, part(required=(names,))
    for name in sorted(group.forbidden):
        yield FORBIDDEN, (name,), part(forbidden=frozenset((name,)))
    for uuids in group.member_of:
        yield MEMBER_OF, uuids, part(member_of=(uuids,))
    for value in member_of:
        _, forbidden = grammar.parse_member_of([value], allow_forbidden=True)
        if forbidden:
            yield FORBIDDEN_AGGREGATES, forbidden, part(forbidden_aggregates=forbidden)
    if group.in_tree is not None:
        yield IN_TREE, (group.in_tree,), part(in_tree=group.in_tree)


def query_of(parts: Sequence[model.Query[int]], nested: bool) -> model.Query[int]:
    """Return the query that has the conditions of all these queries.

    :param nested: whether a candidate may use several providers of one tree
    """
    groups: dict[str, model.Group[int]] = {}
    for group in (group for part in parts for group in part.groups):
        before = groups.get(group.suffix, model.Group(group.suffix))
        groups[group.suffix] = model.Group(
            suffix=group.suffix,
            amounts=before.amounts + group.amounts,
            required=before.required + group.required,
            forbidden=before.forbidden | group.forbidden,
            member_of=before.member_of + group.member_of,
            forbidden_aggregates=before.forbidden_aggregates | group.forbidden_aggregates,
            in_tree=group.in_tree if before.in_tree is None else before.in_tree,
        )
    return model.Query(
        groups=tuple(groups.values()),
        isolate=any(part.isolate for part in parts),
        root_required=frozenset().union(*(part.root_required for part in parts)),
        root_forbidden=frozenset().union(*(part.root_forbidden for part in parts)),
        same_subtrees=request.effective(one for part in parts for one in part.same_subtrees),
        nested=nested,
    )


def _presence(class_id: int) -> int:
    return -1 - class_id


def with_presence(provider: model.Provider, class_ids: Iterable[int]) -> model.Provider:
    """Return the provider with its inventories of these classes, and of their presence."""
    found = {id_: provider.inventories[id_] for id_ in class_ids if id_ in provider.inventories}
    return provider._replace(inventories=found | {_presence(id_): _UNLIMITED for id_ in found})
