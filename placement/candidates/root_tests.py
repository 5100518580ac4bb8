"""The tests of a root: SQL that lets a page skip trees that cannot serve the query.

Every test is necessary for a candidate around the root, none is sufficient: what passes is looked
at again, exactly. Each is a correlated scalar subquery with LIMIT 1, which no database turns into
a join over the whole cloud: the tests run root by root, in the order written, until the page is
full. `statements` makes pages of them; nothing here executes anything.

`root` is the column that holds the root's id: ROOT, or ROOT_OF_MEMBER where a page goes by members
of trees.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
import functools
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import elements

from placement.candidates import model
from placement.db import clauses
from placement.db.sqlalchemy import models

# More tests of different slots than this for one root, or of different classes of one slot, are not
# worth their time. Databases also limit how deep expressions are, and how many tables one SELECT
# may join.
MOST_SLOTS = 16

# The names under which pages speak of a root and of a member of a tree, and what subqueries call
# their rows. They are made once: an alias costs more than the rest of a statement.
ROOTS = models.resource_providers.alias('root')
MEMBERS = models.resource_providers.alias('member')
_SERVER = models.resource_providers.alias('server')
_LINK = models.resource_provider_aggregates.alias('link')

Root = sa.ColumnElement[int]
Clause = elements.ColumnElement[bool]

ROOT: Root = ROOTS.c.id
ROOT_OF_MEMBER: Root = MEMBERS.c.root_provider_id


@dataclass(frozen=True, slots=True)
class Lending:
    """Through which aggregates the sharing providers of the cloud reach other trees."""

    # Slot -> aggregates of the sharing providers that could serve it.
    slots: Mapping[model.Slot, frozenset[int]]
    # Any-set of traits of the unsuffixed group -> aggregates of those that have one.
    traits: Mapping[frozenset[int], frozenset[int]]


def in_order(tests: Sequence[Clause]) -> Clause:
    """All of the tests, asked in this order; the first that fails is the last that is asked.

    PostgreSQL sorts what AND connects by what it believes that each costs.
    """
    if len(tests) == 1:
        return tests[0]
    return sa.case(*((~test, sa.false()) for test in tests), else_=sa.true())


def of_root(query: model.Query[int], root: Root) -> list[Clause]:
    """Tests of what is asked of the root itself, and of nothing else in its tree."""
    tests = [clauses.has_any_trait(root, (trait,)) for trait in sorted(query.root_required)]
    if query.root_forbidden:
        tests.append(~clauses.has_any_trait(root, query.root_forbidden))
    for group in query.groups:
        if not group.suffix and group.forbidden_aggregates:
            tests.append(~clauses.in_any_aggregate(root, group.forbidden_aggregates))
    return tests


def of_place(
    query: model.Query[int], reach: Mapping[int, Collection[int]], root: Root
) -> list[Clause]:
    """Tests of where the root may be, from the in_trees of the query.

    :param reach: root named by a suffixed in_tree -> aggregates through which its tree lends
    """
    tests: list[Clause] = []
    for group in query.groups:
        if group.in_tree is None:
            continue
        lent = reach.get(group.in_tree, ()) if group.suffix else ()
        here = root == group.in_tree
        tests.append(sa.or_(here, _linked(lent, root)) if lent else here)
    return tests


def of_traits(query: model.Query[int], lending: Lending | None, root: Root) -> list[Clause]:
    """Tests whether traits that several providers need together are in the tree, or in reach."""
    tests: list[Clause] = []
    for any_set in query.collective_traits:
        own = clauses.found(_in_tree(root).where(clauses.has_any_trait(_SERVER.c.id, any_set)))
        lent = lending.traits.get(any_set) if lending else None
        tests.append(sa.or_(own, _linked(lent, root)) if lent else own)
    return tests


def of_slots(slots: Sequence[model.Slot], lending: Lending | None, root: Root) -> list[Clause]:
    """Tests whether each slot finds somebody to serve it, in the tree or in reach."""
    own = {slot: clauses.found(_servers(slot, root)) for slot in slots[:MOST_SLOTS]}
    lent = {slot: lending.slots.get(slot) if lending else None for slot in own}
    return [
        sa.or_(own[slot], _linked(lent[slot] or (), root)) if lent[slot] else own[slot]
        for slot in sorted(own, key=lambda slot: bool(lent[slot]))
    ]


def of_borrower(slots: Sequence[model.Slot], root: Root) -> Clause:
    """Tests whether the tree itself serves any of the slots, where all of them could be lent.

    Candidates of sharing providers alone are looked for elsewhere, once and not for each tree.
    """
    if len(slots) > MOST_SLOTS:
        return sa.true()
    return sa.or_(*(clauses.found(_servers(slot, root)) for slot in slots))


def of_conditions(slots: Collection[model.Slot], root: Root) -> list[Clause]:
    """Tests whether each slot finds somebody who has what it asks for beside resources.

    For clouds in which nobody shares.
    """
    choosy = {
        slot.conditions: slot
        for slot in slots
        if slot.group.member_of or (slot.granular and slot.group.required)
    }
    tests = [clauses.found(_servers(slot, root, with_stock=False)) for slot in choosy.values()]
    return tests[:MOST_SLOTS]


def _servers(slot: model.Slot, root: Root, with_stock: bool = True) -> sa.Select[Any]:
    """Providers of the root's tree that could serve the slot."""
    statement = _in_tree(root).where(*_meets_conditions(slot.group, _SERVER, root))
    for number, (class_id, amount) in enumerate(_largest(slot) if with_stock else ()):
        inventory = _inventory(number)
        statement = statement.join(
            inventory, inventory.c.resource_provider_id == _SERVER.c.id
        ).where(
            clauses.unsought(inventory.c.resource_class_id) == class_id,
            _has_stock(number, amount),
        )
    return statement


def serves(slot: model.Slot) -> Clause:
    """Whether the member of a tree could serve the slot."""
    tests = _meets_conditions(slot.group, MEMBERS, ROOT_OF_MEMBER)
    for class_id, amount in _largest(slot):
        rows: sa.Select[Any] = (
            sa.select(sa.literal_column('1'))
            .where(
                _inventory(0).c.resource_provider_id == MEMBERS.c.id,
                _inventory(0).c.resource_class_id == class_id,
                _has_stock(0, amount),
            )
            .correlate(MEMBERS)
        )
        tests.append(clauses.found(rows))
    return sa.and_(sa.true(), *tests)


def _largest(slot: model.Slot) -> list[tuple[int, int]]:
    """The amounts of the slot that are most likely to be too much."""
    return sorted(slot.amounts, key=lambda item: -item[1])[:MOST_SLOTS]


# To make the expressions takes longer than most databases take for a hundred trees, and requests
# ask for the same amounts over and over.
@functools.lru_cache(maxsize=256)
def _has_stock(number: int, amount: int) -> Clause:
    """Whether the inventory of this number has an amount to give."""
    return clauses.may_serve(_inventory(number), amount)


@functools.cache
def _inventory(number: int) -> sa.FromClause:
    """A name for rows of inventories; a statement that joins several of them numbers them."""
    return models.inventories.alias(f'inventory{number}')


def _meets_conditions(group: model.Group[int], provider: sa.FromClause, root: Root) -> list[Clause]:
    """What a group asks of one provider beside resources."""
    tests: list[Clause] = []
    if group.suffix:
        tests += [clauses.has_any_trait(provider.c.id, any_set) for any_set in group.required]
    if group.forbidden:
        tests.append(~clauses.has_any_trait(provider.c.id, group.forbidden))
    if group.forbidden_aggregates:
        tests.append(~clauses.in_any_aggregate(provider.c.id, group.forbidden_aggregates))
    if group.member_of:
        inside = _in_all(provider.c.id, group.member_of)
        # An aggregate of the root spans its tree, but not for suffixed groups.
        tests.append(inside if group.suffix else sa.or_(inside, _in_all(root, group.member_of)))
    return tests


def _in_all(provider_id: sa.ColumnElement[int], sets: Iterable[frozenset[int]]) -> Clause:
    return sa.and_(*(clauses.in_any_aggregate(provider_id, any_set) for any_set in sets))


def _in_tree(root: Root) -> sa.Select[Any]:
    """The providers of the root's tree."""
    return (
        sa.select(sa.literal_column('1'))
        .select_from(_SERVER)
        .where(_SERVER.c.root_provider_id == root)
        .correlate(ROOTS, MEMBERS)
    )


def _linked(aggregate_ids: Collection[int], root: Root) -> Clause:
    """Whether anybody of the root's tree is in one of the aggregates."""
    return clauses.found(
        _in_tree(root)
        .join(_LINK, _LINK.c.resource_provider_id == _SERVER.c.id)
        .where(_LINK.c.aggregate_id.in_(clauses.listed(aggregate_ids)))
    )
