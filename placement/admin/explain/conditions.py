"""Splits a query into its conditions, and builds queries from some of these conditions.

A condition is the smallest part of a query that an operator can leave out: one requested amount,
one required trait, or one aggregate expression, for example. `placement.candidates.request` checks
the query first, so this module expects a valid query.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
import enum

from placement import grammar
from placement.candidates import model, request
from placement.microversion import Version


class Kind(enum.Enum):
    """The kinds of conditions."""

    RESOURCES = 'resources'
    REQUIRED = 'required'
    FORBIDDEN = 'forbidden'
    MEMBER_OF = 'member_of'
    FORBIDDEN_AGGREGATES = 'forbidden aggregates'
    IN_TREE = 'in_tree'
    ROOT_REQUIRED = 'root_required'
    ROOT_FORBIDDEN = 'root_forbidden'
    SAME_SUBTREE = 'same_subtree'
    GROUP_POLICY = 'group_policy'


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a query.

    :ivar key: the key, as the contract of `placement-manage explain` defines it
    :ivar suffix: the suffix of the request group; None if the condition is not part of a group
    :ivar names: the names, UUIDs or suffixes of the condition
    :ivar amount: the requested amount of a resource class
    """

    key: str
    kind: Kind
    suffix: str | None
    names: frozenset[str]
    amount: int = 0

    @property
    def name(self) -> str:
        """The name of a condition that has exactly one."""
        (name,) = self.names
        return name


Conditions = Sequence[Condition]


def conditions_of(
    pairs: request.Pairs, version: Version, query: model.Query[str]
) -> tuple[Condition, ...]:
    """Return the conditions of a query without duplicates, in the order of its groups.

    :param pairs: the (key, value) pairs of the query string
    :param query: the result of `request.parse`
    """
    expressions = _forbidden_aggregates(pairs, version)
    conditions: list[Condition] = []
    for group in query.groups:
        conditions += _of_group(group, expressions)
    for name in sorted(query.root_required):
        conditions.append(_named('root_required:', Kind.ROOT_REQUIRED, None, name))
    for name in sorted(query.root_forbidden):
        conditions.append(_named('root_required:!', Kind.ROOT_FORBIDDEN, None, name))
    for key, value in pairs:
        if key == 'same_subtree':
            suffixes = request.parse_same_subtree(value)
            text = f'same_subtree:{_joined(suffixes)}'
            conditions.append(Condition(text, Kind.SAME_SUBTREE, None, suffixes))
    if query.isolate:
        conditions.append(Condition('group_policy', Kind.GROUP_POLICY, None, frozenset()))
    return tuple(dict.fromkeys(conditions))


def _forbidden_aggregates(
    pairs: request.Pairs, version: Version
) -> list[tuple[str, frozenset[str]]]:
    """Return the suffix and the UUIDs of each forbidden aggregate expression.

    A parsed query has the UUIDs of all expressions of a group in one set.
    """
    found = []
    for kind, suffix, value in request.group_values(pairs, version):
        if kind == 'member_of':
            _, uuids = grammar.parse_member_of([value], allow_forbidden=True)
            if uuids:
                found.append((suffix, uuids))
    return found


def _of_group(
    group: model.Group[str], expressions: Iterable[tuple[str, frozenset[str]]]
) -> Iterator[Condition]:
    suffix = group.suffix
    for name, amount in group.amounts:
        key = f'resources{suffix}:{name}'
        yield Condition(key, Kind.RESOURCES, suffix, frozenset((name,)), amount)
    for names in group.required:
        yield _any_of(f'required{suffix}:', Kind.REQUIRED, suffix, names)
    for name in sorted(group.forbidden):
        yield _named(f'required{suffix}:!', Kind.FORBIDDEN, suffix, name)
    for uuids in group.member_of:
        yield _any_of(f'member_of{suffix}:', Kind.MEMBER_OF, suffix, uuids)
    for of_suffix, uuids in expressions:
        if of_suffix == suffix:
            yield _any_of(f'member_of{suffix}:!', Kind.FORBIDDEN_AGGREGATES, suffix, uuids)
    if group.in_tree is not None:
        yield Condition(f'in_tree{suffix}', Kind.IN_TREE, suffix, frozenset((group.in_tree,)))


def _any_of(prefix: str, kind: Kind, suffix: str, names: frozenset[str]) -> Condition:
    any_of = grammar.ANY_OF if len(names) > 1 else ''
    return Condition(f'{prefix}{any_of}{_joined(names)}', kind, suffix, names)


def _named(prefix: str, kind: Kind, suffix: str | None, name: str) -> Condition:
    return Condition(f'{prefix}{name}', kind, suffix, frozenset((name,)))


def _joined(names: Iterable[str]) -> str:
    return ','.join(sorted(names))


# Queries ----------------------------------------------------------------------


def query_of(
    conditions: Iterable[Condition], relaxed: Collection[Condition], nested: bool
) -> model.Query[str]:
    """Return the query that has these conditions, except for the relaxed ones.

    A relaxed RESOURCES condition has the amount 0 in this query: the class still belongs to the
    group. `with_presence` replaces these amounts.

    :param nested: whether a candidate may use several providers of one tree
    """
    by_suffix: dict[str, list[Condition]] = {}
    others: list[Condition] = []
    for condition in conditions:
        if condition.kind is Kind.RESOURCES and condition in relaxed:
            condition = replace(condition, amount=0)
        elif condition in relaxed:
            continue
        if condition.suffix is None:
            others.append(condition)
        else:
            by_suffix.setdefault(condition.suffix, []).append(condition)
    return model.Query(
        groups=tuple(_group(suffix, members) for suffix, members in by_suffix.items()),
        isolate=any(condition.kind is Kind.GROUP_POLICY for condition in others),
        root_required=_union(others, Kind.ROOT_REQUIRED),
        root_forbidden=_union(others, Kind.ROOT_FORBIDDEN),
        same_subtrees=request.effective(_sets(others, Kind.SAME_SUBTREE)),
        nested=nested,
    )


def _group(suffix: str, conditions: Conditions) -> model.Group[str]:
    in_trees = _sets(conditions, Kind.IN_TREE)
    return model.Group(
        suffix=suffix,
        amounts=tuple((c.name, c.amount) for c in conditions if c.kind is Kind.RESOURCES),
        required=_sets(conditions, Kind.REQUIRED),
        forbidden=_union(conditions, Kind.FORBIDDEN),
        member_of=_sets(conditions, Kind.MEMBER_OF),
        forbidden_aggregates=_union(conditions, Kind.FORBIDDEN_AGGREGATES),
        in_tree=next(iter(in_trees[0])) if in_trees else None,
    )


def _sets(conditions: Iterable[Condition], kind: Kind) -> tuple[frozenset[str], ...]:
    return tuple(condition.names for condition in conditions if condition.kind is kind)


def _union(conditions: Iterable[Condition], kind: Kind) -> frozenset[str]:
    return frozenset().union(*_sets(conditions, kind))


def may_be_relaxed(relaxed: Collection[Condition], conditions: Iterable[Condition]) -> bool:
    """Whether every request group still has a condition if these conditions are relaxed.

    A RESOURCES condition always stays in its group, because relaxing it ignores only its amount.
    """
    conditions = list(conditions)
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
    """Return the id of the class that stands for the presence of an inventory of a class.

    The presence of the presence of a class is the class itself.
    """
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
