"""Splits a query into its conditions, and builds queries from some of these conditions.

A condition is the smallest part of a query that an operator can leave out: one requested amount,
one required trait, or one aggregate expression, for example. `placement.candidates.request` checks
the query first, so this module expects a valid query.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
import enum
from typing import Any

from placement import grammar
from placement.candidates import model, request
from placement.microversion import Version


class Kind(enum.Enum):
    """The kinds of conditions."""

    RESOURCES = enum.auto()
    REQUIRED = enum.auto()
    FORBIDDEN = enum.auto()
    MEMBER_OF = enum.auto()
    FORBIDDEN_AGGREGATES = enum.auto()
    IN_TREE = enum.auto()
    ROOT_REQUIRED = enum.auto()
    ROOT_FORBIDDEN = enum.auto()
    SAME_SUBTREE = enum.auto()
    GROUP_POLICY = enum.auto()


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a query.

    :ivar key: the key, as the guide of `placement-manage explain` defines it
    :ivar part: the query that has only this condition
    """

    key: str
    kind: Kind
    part: model.Query[str]

    @property
    def suffix(self) -> str | None:
        """The suffix of the request group; None if the condition is not part of a group."""
        return self.part.groups[0].suffix if self.part.groups else None

    @property
    def amount(self) -> tuple[str, int]:
        """The resource class and the amount of a RESOURCES condition."""
        ((amount,),) = (group.amounts for group in self.part.groups)
        return amount


Conditions = Sequence[Condition]


def conditions_of(
    pairs: request.Pairs, version: Version, query: model.Query[str]
) -> tuple[Condition, ...]:
    """Return the conditions of a query without duplicates, in the order of its groups.

    :param pairs: the (key, value) pairs of the query string
    :param query: the result of `request.parse`
    """
    conditions: list[Condition] = []
    for group in query.groups:
        conditions += _of_group(group, _forbidden_aggregates(pairs, version, group.suffix))
    for name in sorted(query.root_required):
        part = _query(root_required=frozenset((name,)))
        conditions.append(Condition(f'root_required:{name}', Kind.ROOT_REQUIRED, part))
    for name in sorted(query.root_forbidden):
        part = _query(root_forbidden=frozenset((name,)))
        conditions.append(Condition(f'root_required:!{name}', Kind.ROOT_FORBIDDEN, part))
    for key, value in pairs:
        if key == 'same_subtree':
            suffixes = request.parse_same_subtree(value)
            part = _query(same_subtrees=(suffixes,))
            joined = ','.join(sorted(suffixes))
            conditions.append(Condition(f'same_subtree:{joined}', Kind.SAME_SUBTREE, part))
    if query.isolate:
        conditions.append(Condition('group_policy', Kind.GROUP_POLICY, _query(isolate=True)))
    return tuple(dict.fromkeys(conditions))


def _forbidden_aggregates(
    pairs: request.Pairs, version: Version, suffix: str
) -> Iterator[frozenset[str]]:
    """Yield the UUIDs of each forbidden aggregate expression of a group.

    A parsed query has the UUIDs of all expressions of a group in one set.
    """
    for kind, of_suffix, value in request.group_values(pairs, version):
        if kind == 'member_of' and of_suffix == suffix:
            _, uuids = grammar.parse_member_of([value], allow_forbidden=True)
            if uuids:
                yield uuids


def _of_group(
    group: model.Group[str], forbidden_aggregates: Iterable[frozenset[str]]
) -> Iterator[Condition]:
    def condition(key: str, kind: Kind, **part: Any) -> Condition:
        name, _, value = key.partition(':')
        key = f'{name}{group.suffix}:{value}'.removesuffix(':')
        return Condition(key, kind, _query(groups=(model.Group(group.suffix, **part),)))

    for name, amount in group.amounts:
        yield condition(f'resources:{name}', Kind.RESOURCES, amounts=((name, amount),))
    for names in group.required:
        yield condition(f'required:{_any_of(names)}', Kind.REQUIRED, required=(names,))
    for name in sorted(group.forbidden):
        yield condition(f'required:!{name}', Kind.FORBIDDEN, forbidden=frozenset((name,)))
    for uuids in group.member_of:
        yield condition(f'member_of:{_any_of(uuids)}', Kind.MEMBER_OF, member_of=(uuids,))
    for uuids in forbidden_aggregates:
        key = f'member_of:!{_any_of(uuids)}'
        yield condition(key, Kind.FORBIDDEN_AGGREGATES, forbidden_aggregates=uuids)
    if group.in_tree is not None:
        yield condition('in_tree', Kind.IN_TREE, in_tree=group.in_tree)


def _query(groups: tuple[model.Group[str], ...] = (), **part: Any) -> model.Query[str]:
    return model.Query(groups, **part)


def _any_of(names: frozenset[str]) -> str:
    return (grammar.ANY_OF if len(names) > 1 else '') + ','.join(sorted(names))


# Queries ----------------------------------------------------------------------


def query_of(
    conditions: Iterable[Condition], relaxed: Collection[Condition], nested: bool
) -> model.Query[str]:
    """Return the query that has these conditions, except for the relaxed ones.

    A relaxed RESOURCES condition has the amount 0 in this query: the class still belongs to the
    group. `with_presence` replaces these amounts.

    :param nested: whether a candidate may use several providers of one tree
    """
    groups: dict[str, model.Group[str]] = {}
    kept: list[model.Query[str]] = []
    for condition in conditions:
        if condition not in relaxed:
            kept.append(condition.part)
        elif condition.kind is not Kind.RESOURCES:
            continue
        for part in condition.part.groups:
            if condition in relaxed:
                part = replace(part, amounts=((condition.amount[0], 0),))
            before = groups.get(part.suffix)
            groups[part.suffix] = _together(before, part) if before else part
    return model.Query(
        groups=tuple(groups.values()),
        isolate=any(part.isolate for part in kept),
        root_required=frozenset().union(*(part.root_required for part in kept)),
        root_forbidden=frozenset().union(*(part.root_forbidden for part in kept)),
        same_subtrees=request.effective(one for part in kept for one in part.same_subtrees),
        nested=nested,
    )


def _together(one: model.Group[str], other: model.Group[str]) -> model.Group[str]:
    return model.Group(
        suffix=one.suffix,
        amounts=one.amounts + other.amounts,
        required=one.required + other.required,
        forbidden=one.forbidden | other.forbidden,
        member_of=one.member_of + other.member_of,
        forbidden_aggregates=one.forbidden_aggregates | other.forbidden_aggregates,
        in_tree=other.in_tree if one.in_tree is None else one.in_tree,
    )


def may_be_relaxed(relaxed: Collection[Condition], conditions: Iterable[Condition]) -> bool:
    """Whether every request group still has a condition if these conditions are relaxed.

    A RESOURCES condition always stays in its group, because relaxing it ignores only its amount.
    """
    remaining = {
        condition.suffix
        for condition in conditions
        if condition not in relaxed or condition.kind is Kind.RESOURCES
    }
    return all(
        condition.suffix in remaining for condition in relaxed if condition.suffix is not None
    )


# A relaxed RESOURCES condition still needs an inventory of its class. In a search, this is the
# condition that the provider can allocate one unit of another class, which stands for the presence
# of the inventory, and of which each provider with the inventory has practically unlimited
# capacity. The ids of these classes are negative.


def presence(class_id: int) -> int:
    """Return the id of the class that stands for the presence of an inventory of a class."""
    return -1 - class_id


def with_presence(query: model.Query[int]) -> model.Query[int]:
    """Return the query with one unit of the presence of a class in place of the amount 0."""
    groups = tuple(
        replace(
            group,
            amounts=tuple(
                (class_id, amount) if amount else (presence(class_id), 1)
                for class_id, amount in group.amounts
            ),
        )
        for group in query.groups
    )
    return replace(query, groups=groups)
