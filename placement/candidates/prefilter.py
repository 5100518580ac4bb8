"""Builds SQL conditions on root providers, which exclude trees that cannot serve the query.

If a tree has a candidate, its root satisfies all of these conditions. The reverse is not true: a
root can satisfy the conditions although its tree has no candidate. So the solver checks each tree
that the database returns.

Nearly every condition is a correlated scalar subquery. No database turns such a subquery into a
join over all trees. Instead, the database evaluates the conditions root by root, in the order in
which they are written, and stops when the page is full. `page_statements` combines the conditions
into the SELECT statements that read one page of trees; this module executes no statement.

The parameter `root` of the functions is the SQL expression for the id of the root: ROOT_ID, or
ROOT_ID_OF_MEMBER in a statement that selects tree members instead of roots.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
import functools
import itertools
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import elements

from placement import capacity
from placement.candidates import model
from placement.candidates.sharing import SharingAggregates
from placement.db import capacity_sql, provider_conditions, sql
from placement.db.sqlalchemy import models

# The maximum number of conditions that a function of this module returns for slots, groups, amounts
# or any-sets. More conditions would cost more time than they save, and databases limit the depth of
# expressions and the number of tables in a SELECT.
_MAX_CONDITIONS = 16

# No tree has so much capacity, and drivers cannot send much larger numbers.
_MAX_TOTAL = capacity.MAX_INT**2

# Table aliases: ROOTS and MEMBERS (any provider of a tree) are used in the statements of pages, the
# others in subqueries. PERF: an alias takes longer to create than the rest of a statement, so each
# is created only once.
ROOTS = models.resource_providers.alias('root')
MEMBERS = models.resource_providers.alias('member')
_TREE_PROVIDERS = models.resource_providers.alias('tree_provider')
_AGGREGATE_LINK = models.resource_provider_aggregates.alias('link')

RootId = sa.ColumnElement[int]
Clause = elements.ColumnElement[bool]

ROOT_ID: RootId = ROOTS.c.id
ROOT_ID_OF_MEMBER: RootId = MEMBERS.c.root_provider_id


def in_order(conditions: Sequence[Clause]) -> Clause:
    """Return an AND of the conditions that the database evaluates in the given order.

    This is a CASE expression, because PostgreSQL reorders the operands of AND by estimated cost.
    """
    if len(conditions) == 1:
        return conditions[0]
    return sa.case(*((~condition, sa.false()) for condition in conditions), else_=sa.true())


def root_conditions(query: model.Query[int], root: RootId) -> list[Clause]:
    """Return the conditions of root_required and of the unsuffixed group's forbidden aggregates."""
    conditions = [
        provider_conditions.has_any_trait(root, (trait,))
        for trait in sorted(query.root_required)[:_MAX_CONDITIONS]
    ]
    if query.root_forbidden:
        conditions.append(~provider_conditions.has_any_trait(root, query.root_forbidden))
    conditions += [
        ~provider_conditions.in_any_aggregate(root, group.forbidden_aggregates)
        for group in query.groups
        if not group.suffix and group.forbidden_aggregates
    ]
    return conditions


def in_tree_conditions(
    query: model.Query[int], shared: Mapping[int, Collection[int]], root: RootId
) -> list[Clause]:
    """Return the conditions of in_tree.

    If a suffixed group has in_tree, a sharing provider in this tree can also serve the group in
    candidates of other trees. So the condition is also true for trees that are in an aggregate of
    such a provider.

    :param shared: root id of such a tree -> the aggregates of its sharing providers
    """
    trees = dict.fromkeys(
        (group.in_tree, bool(group.suffix)) for group in query.groups if group.in_tree is not None
    )
    return [
        _or_in_aggregates(root == in_tree, shared.get(in_tree, ()) if suffixed else (), root)
        for in_tree, suffixed in itertools.islice(trees, _MAX_CONDITIONS)
    ]


def collective_trait_conditions(
    query: model.Query[int], sharing: SharingAggregates | None, root: RootId
) -> list[Clause]:
    """Return the conditions for the required traits of the unsuffixed group.

    For each any-set (a set of traits of which at least one is required), a provider of the tree, or
    a sharing provider that is available to the tree, must have one of the traits.
    """
    conditions: list[Clause] = []
    for any_set in query.collective_traits[:_MAX_CONDITIONS]:
        in_tree = _tree_providers(root).where(
            provider_conditions.has_any_trait(_TREE_PROVIDERS.c.id, any_set)
        )
        aggregates = sharing.traits.get(any_set, ()) if sharing else ()
        conditions.append(
            _or_in_aggregates(provider_conditions.has_rows(in_tree), aggregates, root)
        )
    return conditions


def slot_conditions(
    slots: Sequence[model.Slot], sharing: SharingAggregates | None, root: RootId
) -> list[Clause]:
    """Return, for each slot, the condition that a provider can serve it; cheap conditions first.

    A slot is a part of the query that exactly one provider serves (see `model`).
    """
    aggregates = {
        slot: sharing.slots.get(slot, frozenset()) if sharing else frozenset()
        for slot in slots[:_MAX_CONDITIONS]
    }
    return [
        _or_in_aggregates(
            provider_conditions.has_rows(_able_providers(slot, root)), aggregates[slot], root
        )
        for slot in sorted(aggregates, key=lambda slot: bool(aggregates[slot]))
    ]


def group_conditions(slots: Collection[model.Slot], root: RootId) -> list[Clause]:
    """Return one condition for each slot: a provider of the tree has its traits and aggregates.

    These conditions are only for deployments without sharing providers.
    """
    selective = {
        slot.conditions: slot
        for slot in slots
        if slot.group.member_of or (slot.suffixed and slot.group.required)
    }
    conditions = [
        provider_conditions.has_rows(
            _tree_providers(root).where(*_provider_conditions(slot.group, _TREE_PROVIDERS, root))
        )
        for slot in selective.values()
    ]
    return conditions[:_MAX_CONDITIONS]


def can_serve(slot: model.Slot, inventory_of: int | None = None) -> Clause:
    """Return the condition that the provider in MEMBERS could serve the slot.

    :param inventory_of: a class whose inventory is joined to MEMBERS as `inventory_alias(1)`; its
        amount is compared with this inventory
    """
    conditions = _provider_conditions(slot.group, MEMBERS, ROOT_ID_OF_MEMBER)
    inventory = inventory_alias(0)
    for class_id, amount in _largest_amounts(slot):
        if class_id == inventory_of:
            conditions.insert(0, _may_allocate(1, amount))
            continue
        rows: sa.Select[Any] = (
            sa.select(sa.literal_column('1'))
            .where(
                inventory.c.resource_provider_id == MEMBERS.c.id,
                inventory.c.resource_class_id == class_id,
                _may_allocate(0, amount),
            )
            .correlate(MEMBERS)
        )
        conditions.append(provider_conditions.has_rows(rows))
    return sa.and_(sa.true(), *conditions)


def _able_providers(slot: model.Slot, root: RootId) -> sa.Select[Any]:
    """Return a SELECT of the providers of the root's tree that could serve the slot."""
    statement = _tree_providers(root).where(
        *_provider_conditions(slot.group, _TREE_PROVIDERS, root)
    )
    for number, (class_id, amount) in enumerate(_largest_amounts(slot)):
        inventory = inventory_alias(number)
        statement = statement.join(
            inventory, inventory.c.resource_provider_id == _TREE_PROVIDERS.c.id
        ).where(
            sql.WithoutIndex(inventory.c.resource_class_id) == class_id,
            _may_allocate(number, amount),
        )
    return statement


def _largest_amounts(slot: model.Slot) -> list[tuple[int, int]]:
    """Return the largest requested amounts of the slot.

    They exceed the free capacity of a provider most often, so they exclude the most trees.

    :returns: at most _MAX_CONDITIONS (resource class id, amount) pairs
    """
    return sorted(slot.amounts, key=lambda item: -item[1])[:_MAX_CONDITIONS]


# PERF: building this expression takes longer than evaluating it for a hundred trees in most
# databases. It is cached, because most requests use the same few amounts.
@functools.lru_cache(maxsize=256)
def _may_allocate(number: int, amount: int) -> Clause:
    """Return the condition that an inventory can serve the amount.

    :param number: the number of the inventory alias
    """
    return capacity_sql.can_serve(inventory_alias(number), amount)


@functools.cache
def inventory_alias(number: int) -> sa.FromClause:
    """Return an alias of the table inventories. Each join in a statement uses another number."""
    return models.inventories.alias(f'inventory{number}')


def _provider_conditions(
    group: model.Group[int], provider: sa.FromClause, root: RootId
) -> list[Clause]:
    """Return the conditions of a group on one provider, except for the requested amounts.

    :param provider: the alias of the provider
    """
    conditions: list[Clause] = []
    if group.suffix:
        conditions += [
            provider_conditions.has_any_trait(provider.c.id, any_set)
            for any_set in group.required[:_MAX_CONDITIONS]
        ]
    if group.forbidden:
        conditions.append(~provider_conditions.has_any_trait(provider.c.id, group.forbidden))
    if group.forbidden_aggregates:
        conditions.append(
            ~provider_conditions.in_any_aggregate(provider.c.id, group.forbidden_aggregates)
        )
    if group.member_of:
        member_of = group.member_of[:_MAX_CONDITIONS]
        is_member = _in_all(provider.c.id, member_of)
        # For the unsuffixed group, the aggregates of the root apply to all providers of its tree.
        conditions.append(
            is_member if group.suffix else sa.or_(is_member, _in_all(root, member_of))
        )
    return conditions


def _in_all(provider_id: sa.ColumnElement[int], any_sets: Iterable[frozenset[int]]) -> Clause:
    return sa.and_(
        *(provider_conditions.in_any_aggregate(provider_id, any_set) for any_set in any_sets)
    )


def _or_in_aggregates(condition: Clause, aggregate_ids: Collection[int], root: RootId) -> Clause:
    """Return a condition that is true if `condition` is true, or the tree is in an aggregate.

    :param aggregate_ids: the aggregates. A tree is in an aggregate if one of its providers is
    """
    if not aggregate_ids:
        return condition
    rows = (
        _tree_providers(root)
        .join(_AGGREGATE_LINK, _AGGREGATE_LINK.c.resource_provider_id == _TREE_PROVIDERS.c.id)
        .where(_AGGREGATE_LINK.c.aggregate_id.in_(provider_conditions.id_list(aggregate_ids)))
    )
    return sa.or_(condition, provider_conditions.has_rows(rows))


def _tree_providers(root: RootId) -> sa.Select[Any]:
    """Return a SELECT of the providers of the root's tree. The caller adds conditions."""
    return (
        sa.select(sa.literal_column('1'))
        .select_from(_TREE_PROVIDERS)
        .where(_TREE_PROVIDERS.c.root_provider_id == root)
        .correlate(ROOTS, MEMBERS)
    )


def combined_conditions(
    slots: Sequence[model.Slot],
    isolate: bool,
    sharing: SharingAggregates | None,
    root: RootId,
    members_of: model.Slot | None = None,
) -> list[Clause]:
    """Return conditions for slots that the tree must serve together; cheap conditions first.

    A query with 200 equal groups has only one kind of slot, and nearly every tree can serve one
    slot of it. Without these conditions, the solver would have to check each of these trees. Slots
    that sharing providers can serve are not included.

    :param slots: all slots of the query, not only one of each kind
    :param isolate: whether different suffixed groups must use different providers
    :param members_of: the slot that selects the members in a statement that selects tree members
    """
    own = [slot for slot in slots if not (sharing and sharing.slots.get(slot))]
    counts = Counter(slot.kind for slot in own if isolate and slot.suffixed)
    conditions: list[Clause] = []
    if len(counts) > 1:
        conditions.append(_at_least(counts.total(), _tree_providers(root)))
    repeated = {slot.kind: slot for slot in own if counts[slot.kind] > 1}
    if members_of and repeated.pop(members_of.kind, None):
        conditions.append(sa.func.count() >= counts[members_of.kind])
    conditions += [
        _at_least(counts[kind], _able_providers(slot, root))
        for kind, slot in itertools.islice(repeated.items(), _MAX_CONDITIONS)
    ]
    return conditions + [
        _tree_can_serve(class_id, total, root) for class_id, total in _totals(own, counts)
    ]


def _at_least(count: int, rows: sa.Select[Any]) -> Clause:
    """Return the condition that a correlated SELECT returns at least this many rows."""
    return provider_conditions.has_rows(rows.offset(count - 1))


def _totals(
    slots: Iterable[model.Slot], isolated_kinds: Mapping[tuple[object, ...], int]
) -> list[tuple[int, int]]:
    """Return the classes that several slots request, and the total amount of each class.

    A class that only isolated slots of one kind request is left out: if the tree has a provider for
    each of these slots, it has enough free capacity.

    :param isolated_kinds: the kinds of the isolated slots
    """
    totals: Counter[int] = Counter()
    requests: dict[int, set[object]] = {}
    for slot in slots:
        requester = slot.kind if slot.kind in isolated_kinds else slot
        for class_id, amount in slot.amounts:
            totals[class_id] += amount
            requests.setdefault(class_id, set()).add(requester)
    return [item for item in totals.most_common() if len(requests[item[0]]) > 1][:_MAX_CONDITIONS]


def _tree_can_serve(class_id: int, total: int, root: RootId) -> Clause:
    """Return the condition that the providers of the tree can serve a total amount of a class."""
    if total > _MAX_TOTAL:
        return sa.false()
    inventory = inventory_alias(0)
    largest = (
        sa.select(sa.func.sum(capacity_sql.largest_amount(inventory)))
        .select_from(_TREE_PROVIDERS)
        .join(inventory, inventory.c.resource_provider_id == _TREE_PROVIDERS.c.id)
        .where(
            _TREE_PROVIDERS.c.root_provider_id == root,
            sql.WithoutIndex(inventory.c.resource_class_id) == class_id,
        )
        .correlate(ROOTS, MEMBERS)
    )
    return sa.func.coalesce(largest.scalar_subquery(), 0) >= total * capacity_sql.TOLERANCE
