"""The statements that select the roots of pages.

A page is a set of provider trees that is read together (see `pages`). The roots of a *lenient* page
satisfy only cheap conditions, such as root_required and in_tree. For a *strict* page, the database
also skips trees that cannot serve the query.

If a tree has a candidate, its root satisfies all of these conditions. The reverse is not true: a
root can satisfy the conditions although its tree has no candidate. So the solver checks each tree
that the database returns.

Nearly every condition is a correlated scalar subquery. No database turns such a subquery into a
join over all trees. Instead, the database evaluates the conditions root by root, in the order in
which they are written, and stops when the page is full. The exceptions are *rare* traits and
aggregates, which at most MAX_PROVIDERS providers have: if a query requires one, its pages are
restricted to the trees of these providers, which the database finds with an index.

PERF: with a trait of one host, limit=10 took 2.8 s with 1,000,000 hosts and 20 ms with 10,000 hosts
(MariaDB, tools/perf, 2026-11), if all trees were examined. For a trait or aggregate that is not
rare, the look-up of its name takes less than 0.1 ms longer, because the database counts at most
MAX_PROVIDERS rows.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
import functools
import itertools
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import elements

from placement import capacity
from placement.candidates import model
from placement.candidates.sharing import AbleProviders, aggregates_of
from placement.db import expressions, sql
from placement.db.expressions import has_any_trait, has_rows, id_list, in_any_aggregate
from placement.db.sqlalchemy import models

MAX_PROVIDERS = 1000

# The maximum number of conditions that a function of this module returns for slots, groups, amounts
# or any-sets. More conditions would cost more time than they save, and databases limit the depth of
# expressions and the number of tables in a SELECT.
_MAX_CONDITIONS = 16

# No tree has so much capacity, and drivers cannot send much larger numbers.
_MAX_TOTAL = capacity.MAX_INT**2

# Table aliases: ROOTS is used in the statements of pages, the others in subqueries. PERF: an alias
# takes longer to create than the rest of a statement, so each is created only once.
ROOTS = models.resource_providers.alias('root')
_TREE_PROVIDERS = models.resource_providers.alias('tree_provider')
_AGGREGATE_LINK = models.resource_provider_aggregates.alias('link')
_OWNER = models.resource_providers.alias('owner')
_OWNED_TRAIT = models.resource_provider_traits.alias('rare_trait')
_OWNED_AGGREGATE = models.resource_provider_aggregates.alias('rare_aggregate')

Clause = elements.ColumnElement[bool]

# Some providers have no valid root: old releases stored NULL as root id, and in a damaged database,
# the root may not exist or may have a parent. These providers are not searched, and a page must not
# count them as trees.
IS_ROOT = sa.and_(sql.IsNull(ROOTS.c.parent_provider_id), ROOTS.c.root_provider_id == ROOTS.c.id)


@functools.cache
def all_roots() -> sa.Select[Any]:
    """Return a statement like `_roots`, without conditions."""
    return _roots(())


def lenient_roots(
    query: model.Query[int], slots: Sequence[model.Slot], sharing_id: int | None
) -> sa.Select[Any]:
    """Return the statement that returns the root ids of lenient pages.

    In deployments without sharing providers, it also has the conditions on traits and aggregates of
    providers, which are cheap to evaluate.

    :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has it
    """
    conditions = _root_conditions(query, sharing_id)
    if sharing_id is None:
        conditions += _collective_trait_conditions(query, {})
        selective = {
            slot.conditions: slot._replace(amounts=())
            for slot in slots
            if slot.group.member_of or (slot.suffixed and slot.group.required)
        }
        conditions += _slot_conditions(tuple(selective.values()), {})
    # PERF: most queries have no conditions on the root, and their statement is built only once.
    return _roots(conditions) if conditions else all_roots()


def strict_roots(
    query: model.Query[int],
    slots: Sequence[model.Slot],
    sharing_id: int | None,
    able: AbleProviders,
    first: Sequence[model.Slot],
) -> sa.Select[Any]:
    """Return the statement that returns the root ids of strict pages.

    :param slots: all slots of the query
    :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has it
    :param able: the sharing providers that can serve each slot
    :param first: the slots to check one by one; those that the fewest trees can serve are first
    """
    # Trait conditions are first, because they cost less than sums of allocations.
    conditions = [
        *_collective_trait_conditions(query, able),
        *_slot_conditions(first, able),
        *_combined_conditions([slot for slot in slots if not able.get(slot)], query.isolate),
    ]
    # PostgreSQL reorders the operands of AND by estimated cost, but not those of CASE.
    in_order = sa.case(*((~condition, sa.false()) for condition in conditions), else_=sa.true())
    return _roots([*_root_conditions(query, sharing_id), in_order])


def _roots(conditions: Iterable[Clause]) -> sa.Select[Any]:
    """Return a statement that returns the ids of the roots that satisfy the conditions.

    It returns at most `size` ids greater than `after`, in ascending order.
    """
    after = ROOTS.c.id > sa.bindparam('after', type_=sa.Integer)
    statement = sa.select(ROOTS.c.id).where(IS_ROOT, after, *conditions)
    return statement.order_by(ROOTS.c.id).limit(sa.bindparam('size', type_=sa.Integer))


# Conditions on the root -------------------------------------------------------


def _root_conditions(query: model.Query[int], sharing_id: int | None) -> list[Clause]:
    """Return the conditions on the root that lenient and strict pages have in common.

    These are the conditions of rare traits and aggregates, of root_required, of the forbidden
    aggregates of the unsuffixed group, and of in_tree.
    """
    root_id = ROOTS.c.id
    conditions = _rare_conditions(query, sharing_id)
    conditions += [
        has_any_trait(root_id, (trait,)) for trait in sorted(query.root_required)[:_MAX_CONDITIONS]
    ]
    if query.root_forbidden:
        conditions.append(~has_any_trait(root_id, query.root_forbidden))
    conditions += [
        ~in_any_aggregate(root_id, group.forbidden_aggregates)
        for group in query.groups
        if not group.suffix and group.forbidden_aggregates
    ]
    trees = dict.fromkeys(
        (group.in_tree, bool(group.suffix)) for group in query.groups if group.in_tree is not None
    )
    for in_tree, suffixed in itertools.islice(trees, _MAX_CONDITIONS):
        condition = root_id == in_tree
        if suffixed and sharing_id is not None and in_tree != model.NO_SUCH_ROOT:
            # A sharing provider in the tree can also serve the group in candidates of other trees.
            condition = sa.or_(condition, _in_aggregates(_shared_by(in_tree, sharing_id)))
        conditions.append(condition)
    return conditions


def _shared_by(root_id: int, sharing_id: int) -> sa.Select[Any]:
    """Return a SELECT of the aggregates of the sharing providers in a tree."""
    return (
        sa.select(_OWNED_AGGREGATE.c.aggregate_id)
        .join_from(_OWNER, _OWNED_AGGREGATE, _OWNED_AGGREGATE.c.resource_provider_id == _OWNER.c.id)
        .where(_OWNER.c.root_provider_id == root_id, has_any_trait(_OWNER.c.id, (sharing_id,)))
    )


def is_rare(id_: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return whether at most MAX_PROVIDERS providers have a trait, or are in an aggregate.

    :param id_: the id column of a table with names; false for tables other than traits and
        aggregates
    """
    links = {
        models.traits: _OWNED_TRAIT.c.trait_id,
        models.placement_aggregates: _OWNED_AGGREGATE.c.aggregate_id,
    }
    if id_.table not in links:
        return sa.false()
    rows: sa.Select[Any] = sa.select(sa.literal_column('1')).where(links[id_.table] == id_)
    next_provider = rows.correlate(id_.table).limit(1).offset(MAX_PROVIDERS)
    return next_provider.scalar_subquery().is_(None)


def _rare_conditions(query: model.Query[int], sharing_id: int | None) -> list[Clause]:
    """Return at most one condition: that the tree has a provider with something rare.

    If sharing providers exist, a sharing provider of another tree may have the required traits and
    aggregates, except for those of root_required.
    """
    groups = query.groups if sharing_id is None else ()
    traits = [frozenset((trait,)) for trait in sorted(query.root_required)]
    traits += [any_set for group in groups for any_set in group.required]
    aggregates = [any_set for group in groups for any_set in group.member_of]
    trait_id, aggregate_id = _OWNED_TRAIT.c.trait_id, _OWNED_AGGREGATE.c.aggregate_id
    rare = [(trait_id, ids) for ids in traits if ids <= query.rare_traits]
    rare += [(aggregate_id, ids) for ids in aggregates if ids <= query.rare_aggregates]
    if not rare:
        return []
    link_id, ids = min(rare, key=lambda one: len(one[1]))
    roots = (
        sa.select(_OWNER.c.root_provider_id)
        .select_from(link_id.table)
        .join(_OWNER, _OWNER.c.id == link_id.table.c.resource_provider_id)
        .where(link_id.in_(id_list(ids)))
    )
    return [ROOTS.c.id.in_(roots)]


# Conditions on one slot -------------------------------------------------------


def _collective_trait_conditions(query: model.Query[int], able: AbleProviders) -> list[Clause]:
    """Return the conditions for the required traits of the unsuffixed group.

    For each any-set (a set of traits of which at least one is required), a provider of the tree, or
    a sharing provider that is available to the tree, must have one of the traits.

    :param able: the sharing providers that can serve each slot
    """
    providers = [p for slot, some in able.items() if not slot.suffixed for p in some]
    return [
        _or_in_aggregates(
            has_rows(_tree_providers().where(has_any_trait(_TREE_PROVIDERS.c.id, any_set))),
            aggregates_of(p for p in providers if any_set & p.traits),
        )
        for any_set in query.collective_traits[:_MAX_CONDITIONS]
    ]


def _slot_conditions(slots: Sequence[model.Slot], able: AbleProviders) -> list[Clause]:
    """Return, for each slot, the condition that a provider can serve it; cheap conditions first.

    A slot is a part of the query that exactly one provider serves (see `model`).

    :param able: the sharing providers that can serve each slot
    """
    shared = {slot: aggregates_of(able.get(slot, ())) for slot in slots[:_MAX_CONDITIONS]}
    return [
        _or_in_aggregates(has_rows(_able_providers(slot)), shared[slot])
        for slot in sorted(shared, key=lambda slot: bool(shared[slot]))
    ]


def _able_providers(slot: model.Slot) -> sa.Select[Any]:
    """Return a SELECT of the providers of the root's tree that could serve the slot."""
    statement = _tree_providers().where(*_provider_conditions(slot.group))
    # The largest amounts exceed the free capacity of a provider most often.
    amounts = sorted(slot.amounts, key=lambda item: -item[1])[:_MAX_CONDITIONS]
    for number, (class_id, amount) in enumerate(amounts):
        inventory = _inventory_alias(number)
        statement = statement.join(
            inventory, inventory.c.resource_provider_id == _TREE_PROVIDERS.c.id
        ).where(
            sql.WithoutIndex(inventory.c.resource_class_id) == class_id,
            _may_allocate(number, amount),
        )
    return statement


# PERF: building this expression takes longer than evaluating it for a hundred trees in most
# databases. It is cached, because most requests use the same few amounts.
@functools.lru_cache(maxsize=256)
def _may_allocate(number: int, amount: int) -> Clause:
    """Return the condition that an inventory can serve the amount.

    :param number: the number of the inventory alias
    """
    return expressions.can_serve(_inventory_alias(number), amount)


@functools.cache
def _inventory_alias(number: int) -> sa.FromClause:
    """Return an alias of the table inventories. Each join in a statement uses another number."""
    return models.inventories.alias(f'inventory{number}')


def _provider_conditions(group: model.Group[int]) -> list[Clause]:
    """Return the conditions of a group on one provider, except for the requested amounts."""
    provider_id = _TREE_PROVIDERS.c.id
    conditions: list[Clause] = []
    if group.suffix:
        conditions += [
            has_any_trait(provider_id, any_set) for any_set in group.required[:_MAX_CONDITIONS]
        ]
    if group.forbidden:
        conditions.append(~has_any_trait(provider_id, group.forbidden))
    if group.forbidden_aggregates:
        conditions.append(~in_any_aggregate(provider_id, group.forbidden_aggregates))
    if group.member_of:
        member_of = group.member_of[:_MAX_CONDITIONS]
        is_member = _in_all(provider_id, member_of)
        # For the unsuffixed group, the aggregates of the root apply to all providers of its tree.
        conditions.append(
            is_member if group.suffix else sa.or_(is_member, _in_all(ROOTS.c.id, member_of))
        )
    return conditions


def _in_all(provider_id: sa.ColumnElement[int], any_sets: Iterable[frozenset[int]]) -> Clause:
    return sa.and_(*(in_any_aggregate(provider_id, any_set) for any_set in any_sets))


def _or_in_aggregates(condition: Clause, aggregate_ids: Collection[int]) -> Clause:
    """Return a condition that is true if `condition` is true, or the tree is in an aggregate."""
    if not aggregate_ids:
        return condition
    return sa.or_(condition, _in_aggregates(id_list(aggregate_ids)))


def _in_aggregates(aggregate_ids: sa.BindParameter[Any] | sa.Select[Any]) -> Clause:
    """Return the condition that at least one provider of the tree is in an aggregate."""
    return has_rows(
        _tree_providers()
        .join(_AGGREGATE_LINK, _AGGREGATE_LINK.c.resource_provider_id == _TREE_PROVIDERS.c.id)
        .where(_AGGREGATE_LINK.c.aggregate_id.in_(aggregate_ids))
    )


def _tree_providers() -> sa.Select[Any]:
    """Return a SELECT of the providers of the root's tree. The caller adds conditions."""
    return (
        sa.select(sa.literal_column('1'))
        .select_from(_TREE_PROVIDERS)
        .where(_TREE_PROVIDERS.c.root_provider_id == ROOTS.c.id)
        .correlate(ROOTS)
    )


# Conditions on several slots --------------------------------------------------


def _combined_conditions(slots: Sequence[model.Slot], isolate: bool) -> list[Clause]:
    """Return conditions for slots that the tree must serve together; cheap conditions first.

    A query with 200 equal groups has only one kind of slot, and nearly every tree can serve one
    slot of it. Without these conditions, the solver would have to check each of these trees.

    :param slots: the slots that no sharing provider can serve
    :param isolate: whether different suffixed groups must use different providers
    """
    counts = Counter(slot.kind for slot in slots if isolate and slot.suffixed)
    conditions: list[Clause] = []
    if len(counts) > 1:
        conditions.append(_at_least(counts.total(), _tree_providers()))
    repeated = {slot.kind: slot for slot in slots if counts[slot.kind] > 1}
    conditions += [
        _at_least(counts[kind], _able_providers(slot))
        for kind, slot in itertools.islice(repeated.items(), _MAX_CONDITIONS)
    ]
    amounts = [item for slot in slots for item in slot.amounts]
    requests = Counter(class_id for class_id, _ in amounts)
    repeated_classes = [id_ for id_, count in requests.most_common(_MAX_CONDITIONS) if count > 1]
    return conditions + [
        _tree_can_serve(class_id, sum(n for id_, n in amounts if id_ == class_id))
        for class_id in repeated_classes
    ]


def _at_least(count: int, rows: sa.Select[Any]) -> Clause:
    """Return the condition that a correlated SELECT returns at least this many rows."""
    return has_rows(rows.offset(count - 1))


def _tree_can_serve(class_id: int, total: int) -> Clause:
    """Return the condition that the providers of the tree can serve a total amount of a class."""
    if total > _MAX_TOTAL:
        return sa.false()
    inventory = _inventory_alias(0)
    largest = (
        sa.select(sa.func.sum(expressions.largest_amount(inventory)))
        .select_from(_TREE_PROVIDERS)
        .join(inventory, inventory.c.resource_provider_id == _TREE_PROVIDERS.c.id)
        .where(
            _TREE_PROVIDERS.c.root_provider_id == ROOTS.c.id,
            sql.WithoutIndex(inventory.c.resource_class_id) == class_id,
        )
        .correlate(ROOTS)
    )
    return sa.func.coalesce(largest.scalar_subquery(), 0) >= total * expressions.TOLERANCE
