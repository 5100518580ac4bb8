"""All SQL of the search. Functions make statements; only `snapshot` executes them.

Two things shape them. A page of trees is one statement that finds its roots and reads them:
for every provider one row, whose traits, aggregates and stock are JSON arrays made by the
database, because rows cost more than bytes. And what tests a root is a correlated scalar
subquery with LIMIT 1, which no database turns into a join over the whole cloud: the tests
run root by root, in the order written, until the page is full.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
import functools
from typing import Any

import os_traits
import sqlalchemy as sa
from sqlalchemy.sql import elements

from placement.candidates import model
from placement.db import clauses
from placement.db.sqlalchemy import models

# Kinds of rows of `lookup` and `names`.
CLASS, TRAIT, AGGREGATE, TREE, SHARING = 'class', 'trait', 'aggregate', 'tree', 'sharing'

# More tests of different slots than this for one root, or of different classes of one slot, are not
# worth their time. Databases also limit how deep expressions are, and how many tables one SELECT
# may join.
MOST_SLOT_TESTS = 16
# Single precision columns, as MySQL has for ratios, are this far off at most. The tests here
# must not be stricter than the arithmetic that decides.
_TOLERANCE = 1.000001

_PROVIDERS = models.resource_providers
_TRAITS = models.resource_provider_traits
_AGGREGATES = models.resource_provider_aggregates

# The names under which pages speak of a root, of a member of a tree, and facts of a provider, and
# what subqueries call their rows. They are made once: an alias costs more than the rest of a
# statement.
_ROOT = _PROVIDERS.alias('root')
_MEMBER = _PROVIDERS.alias('member')
_PROVIDER = _PROVIDERS.alias('provider')
_SERVER = _PROVIDERS.alias('server')
_TRAIT_LINK = _TRAITS.alias('trait_link')
_AGGREGATE_LINK = _AGGREGATES.alias('aggregate_link')
# What tests speak of: the root that `page` and others look at, and that of `page_of_servers`.
ROOT: sa.ColumnElement[int] = _ROOT.c.id
ROOT_OF_MEMBER: sa.ColumnElement[int] = _MEMBER.c.root_provider_id

Clause = elements.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Lending:
    """Through which aggregates the sharing providers of the cloud reach other trees."""

    # Slot -> aggregates of the sharing providers that could serve it.
    slots: Mapping[model.Slot, frozenset[int]]
    # Any-set of traits of the unsuffixed group -> aggregates of those that have one.
    traits: Mapping[frozenset[int], frozenset[int]]


# Names ------------------------------------------------------------------------


# What is named: the column with the name, and the id that is wanted for it.
_NAMED: dict[str, tuple[sa.Column[Any], sa.Column[Any]]] = {
    CLASS: (models.resource_classes.c.name, models.resource_classes.c.id),
    TRAIT: (models.traits.c.name, models.traits.c.id),
    AGGREGATE: (models.placement_aggregates.c.uuid, models.placement_aggregates.c.id),
    TREE: (_PROVIDERS.c.uuid, _PROVIDERS.c.root_provider_id),
}

Parameters = dict[str, Any]


def lookup(query: model.Query[str]) -> tuple[sa.CompoundSelect[Any], Parameters]:
    """Ids of all names of the query, as rows (kind, name, id); SHARING when anybody shares.

    This statement, as some others here, is the same for all requests but for its parameters: to
    make it takes longer than to send it.
    """
    named = {
        CLASS: query.classes,
        TRAIT: query.traits,
        AGGREGATE: query.aggregates,
        TREE: query.trees,
    }
    asked = {kind: sorted(names) for kind, names in named.items() if names}
    return _lookup(tuple(asked)), asked


@functools.cache
def _lookup(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    named = [
        _kind(kind, name, id_).where(name.in_(sa.bindparam(kind, expanding=True)))
        for kind, (name, id_) in _NAMED.items()
        if kind in kinds
    ]
    traits = models.traits.c
    sharing = _kind(SHARING, traits.name, traits.id).where(
        traits.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
        sa.exists().where(_TRAITS.c.trait_id == traits.id),
    )
    return sa.union_all(*named, sharing)


def names(
    class_ids: Iterable[int], trait_ids: Iterable[int]
) -> tuple[sa.CompoundSelect[Any], Parameters]:
    """Names for ids, as rows (kind, name, id)."""
    return _names(), {CLASS: sorted(class_ids), TRAIT: sorted(trait_ids)}


@functools.cache
def _names() -> sa.CompoundSelect[Any]:
    return sa.union_all(
        *(
            _kind(kind, *_NAMED[kind]).where(
                _NAMED[kind][1].in_(sa.bindparam(kind, expanding=True, literal_execute=True))
            )
            for kind in (CLASS, TRAIT)
        )
    )


def _kind(kind: str, name: sa.Column[Any], id_: sa.Column[Any]) -> sa.Select[Any]:
    return sa.select(sa.literal_column(f"'{kind}'"), name, id_)


def _listed(ids: Iterable[int]) -> sa.BindParameter[Any]:
    """Ids for an IN, written into the statement: drivers limit the number of parameters."""
    return sa.bindparam(None, sorted(ids), sa.Integer, expanding=True, literal_execute=True)


# Facts ------------------------------------------------------------------------


@functools.cache
def facts(with_aggregates: bool) -> sa.Select[Any]:
    """The columns that `snapshot` makes a Provider of; callers join `_PROVIDER` to something.

    What a provider has many of comes as the text of a JSON array.
    """
    inventory = _inventory(0)
    record = clauses.json_numbers(
        inventory.c.resource_class_id,
        inventory.c.total,
        inventory.c.reserved,
        inventory.c.min_unit,
        inventory.c.max_unit,
        inventory.c.step_size,
        clauses.json_number(inventory.c.allocation_ratio),
        clauses.used(inventory),
    )
    return sa.select(
        _PROVIDER.c.id,
        _PROVIDER.c.uuid,
        _PROVIDER.c.root_provider_id,
        _PROVIDER.c.parent_provider_id,
        _list_of(_TRAIT_LINK, 'trait_id'),
        _list_of(_AGGREGATE_LINK, 'aggregate_id') if with_aggregates else sa.null(),
        sa.select(clauses.json_list(record))
        .select_from(inventory)
        .where(inventory.c.resource_provider_id == _PROVIDER.c.id)
        .correlate(_PROVIDER)
        .scalar_subquery(),
    )


@functools.cache
def _inventory(number: int) -> sa.FromClause:
    """A name for rows of inventories; a statement that joins several of them numbers them."""
    return models.inventories.alias(f'inventory{number}')


def _list_of(rows: sa.FromClause, column: str) -> sa.ScalarSelect[str]:
    return (
        sa.select(clauses.json_list(rows.c[column]))
        .where(rows.c.resource_provider_id == _PROVIDER.c.id)
        .correlate(_PROVIDER)
        .scalar_subquery()
    )


# Parameters of pages: the roots of a page have ids above `after`, up to `upto`.
_AFTER = sa.bindparam('after', type_=sa.Integer)
_UPTO = sa.bindparam('upto', type_=sa.Integer)
_SIZE = sa.bindparam('size', type_=sa.Integer)
# Providers without a root, from old releases, are nowhere; a page must not count them.
_IS_ROOT = (_ROOT.c.parent_provider_id.is_(None), _ROOT.c.root_provider_id.is_not(None))
# The largest id that there can be.
MAX_ID = 2**31 - 1


def page(tests: Sequence[Clause], with_aggregates: bool) -> sa.Select[Any]:
    """Facts of the trees of the next `size` roots that pass the tests, in the order of roots.

    Its parameters are `after`, `upto` and `size`.
    """
    return _page(tuple(tests), with_aggregates) if tests else _plain_page(with_aggregates)


@functools.cache
def _plain_page(with_aggregates: bool) -> sa.Select[Any]:
    return _page((), with_aggregates)


def _page(tests: Iterable[Clause], with_aggregates: bool) -> sa.Select[Any]:
    few = (
        sa.select(_ROOT.c.id)
        .where(*_IS_ROOT, _ROOT.c.id > _AFTER, _ROOT.c.id <= _UPTO, *tests)
        .order_by(_ROOT.c.id)
        .limit(_SIZE)
    )
    return _facts_of_roots(few.subquery('few'), with_aggregates)


def page_of_servers(
    slot: model.Slot, tests: Iterable[Clause], others: Sequence[Clause], with_aggregates: bool
) -> sa.Select[Any]:
    """The same as `page`, by way of the providers that could serve a slot by themselves.

    To look at members of trees instead of the members of each root spares one look-up for each
    tree: a fifth to a third of the time of a page on which hardly anybody fits.

    :param tests: tests of ROOT_OF_MEMBER; they are asked of each member, so they must not be
        about its tree
    :param others: tests of the other slots; they are asked last, in this order, and once for each
        tree, however many of it could serve: that is why they are a HAVING
    """
    root = _MEMBER.c.root_provider_id
    few = (
        sa.select(root.label('id'))
        .where(root > _AFTER, root <= _UPTO, *tests, _serves(slot))
        .group_by(root)
        .order_by(root)
        .limit(_SIZE)
    )
    if others:
        few = few.having(in_order(others))
    return _facts_of_roots(few.subquery('few'), with_aggregates)


def trees(root_ids: Collection[int], but: Collection[int] = ()) -> sa.Select[Any]:
    """Facts of the providers of the trees of these roots, but for some providers."""
    few = sa.select(_ROOT.c.id).where(_ROOT.c.id.in_(_listed(root_ids)))
    statement = _facts_of_roots(few.subquery('few'), with_aggregates=True)
    return statement.where(_PROVIDER.c.id.not_in(_listed(but))) if but else statement


def _facts_of_roots(few: sa.Subquery, with_aggregates: bool) -> sa.Select[Any]:
    return facts(with_aggregates).join_from(
        few, _PROVIDER, _PROVIDER.c.root_provider_id == few.c.id
    )


def sharers(
    sharing_id: int, aggregate_ids: Collection[int] | None = None, roots: Collection[int] = ()
) -> sa.Select[Any]:
    """Facts of the sharing providers: all, those in aggregates, or those of some trees."""
    statement = facts(with_aggregates=True).join_from(
        _TRAITS, _PROVIDER, _PROVIDER.c.id == _TRAITS.c.resource_provider_id
    )
    statement = statement.where(_TRAITS.c.trait_id == sharing_id)
    if roots:
        statement = statement.where(_PROVIDER.c.root_provider_id.in_(_listed(roots)))
    if aggregate_ids is not None:
        link = _AGGREGATE_LINK
        statement = statement.where(
            sa.exists().where(
                link.c.resource_provider_id == _PROVIDER.c.id,
                link.c.aggregate_id.in_(_listed(aggregate_ids)),
            )
        )
    return statement


def root_at(position: int) -> sa.Select[Any]:
    """The id of the root at a position in the order of ids."""
    roots = sa.select(_ROOT.c.id).where(*_IS_ROOT)
    return roots.order_by(_ROOT.c.id).offset(position).limit(1)


def root_count() -> sa.Select[Any]:
    """How many trees there are."""
    return sa.select(sa.func.count(_ROOT.c.id)).where(*_IS_ROOT)


def members(aggregate_ids: Collection[int], tests: Iterable[Clause]) -> sa.Select[Any]:
    """Rows (root, aggregate): which trees have members in the aggregates."""
    link = _AGGREGATES
    return (
        _roots_of(link, tests)
        .add_columns(link.c.aggregate_id)
        .where(link.c.aggregate_id.in_(_listed(aggregate_ids)))
        .distinct()
    )


def first_members(aggregate_ids: Collection[int], tests: Iterable[Clause]) -> sa.Select[Any]:
    """One tree with a member in it for each aggregate, if there is one, as rows (root,)."""
    link, aggregate = _AGGREGATES, models.placement_aggregates
    first = _roots_of(link, tests).where(link.c.aggregate_id == aggregate.c.id).limit(1)
    return sa.select(first.correlate(aggregate).scalar_subquery()).where(
        aggregate.c.id.in_(_listed(aggregate_ids))
    )


def _roots_of(link: sa.FromClause, tests: Iterable[Clause]) -> sa.Select[Any]:
    """Roots that pass the tests, of the providers that rows of `link` name."""
    return (
        sa.select(_ROOT.c.id)
        .select_from(link)
        .join(_MEMBER, _MEMBER.c.id == link.c.resource_provider_id)
        .join(_ROOT, _ROOT.c.id == _MEMBER.c.root_provider_id)
        .where(*tests)
    )


# Tests of a root --------------------------------------------------------------
#
# Every test is necessary for a candidate around the root, none is sufficient: what passes is
# looked at again, exactly.


# `root` is the column that holds the root's id: ROOT or ROOT_OF_MEMBER.

Root = sa.ColumnElement[int]


def in_order(tests: Sequence[Clause]) -> Clause:
    """All of the tests, asked in this order; the first that fails is the last that is asked.

    PostgreSQL sorts what AND connects by what it believes that each costs.
    """
    if len(tests) == 1:
        return tests[0]
    return sa.case(*((~test, sa.false()) for test in tests), else_=sa.true())


def root_tests(query: model.Query[int], root: Root) -> list[Clause]:
    """Tests of what is asked of the root itself, and of nothing else in its tree."""
    tests = [_some(_has_trait(root, (trait,))) for trait in sorted(query.root_required)]
    if query.root_forbidden:
        tests.append(_none(_has_trait(root, query.root_forbidden)))
    for group in query.groups:
        if not group.suffix and group.forbidden_aggregates:
            tests.append(_none(_in_aggregate(root, group.forbidden_aggregates)))
    return tests


def place_tests(
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


def trait_tests(query: model.Query[int], lending: Lending | None, root: Root) -> list[Clause]:
    """Tests whether the traits that groups require are anywhere in the tree, or in reach."""
    tests: list[Clause] = []
    for group in query.groups:
        if group.suffix:
            continue  # tested with the slot
        for any_set in group.required:
            has = _some(_has_trait(_SERVER.c.id, any_set))
            own = _some(_in_tree(_SERVER, root).where(has))
            lent = lending.traits.get(any_set) if lending else None
            tests.append(sa.or_(own, _linked(lent, root)) if lent else own)
    return tests


def different(slots: Collection[model.Slot]) -> list[model.Slot]:
    """One of all slots that the same providers serve."""
    return list({(slot.amounts, _conditions(slot.group)): slot for slot in slots}.values())


def slot_tests(slots: Sequence[model.Slot], lending: Lending | None, root: Root) -> list[Clause]:
    """Tests whether each slot finds somebody to serve it, in the tree or in reach."""
    own = {slot: _some(_servers(slot, root)) for slot in slots[:MOST_SLOT_TESTS]}
    lent = {slot: lending.slots.get(slot) if lending else None for slot in own}
    return [
        sa.or_(own[slot], _linked(lent[slot] or (), root)) if lent[slot] else own[slot]
        for slot in sorted(own, key=lambda slot: bool(lent[slot]))
    ]


def borrower_test(slots: Sequence[model.Slot], root: Root) -> Clause:
    """Tests whether the tree itself serves any of the slots, where all of them could be lent.

    Candidates of sharing providers alone are looked for elsewhere, once and not for each tree.
    """
    if len(slots) > MOST_SLOT_TESTS:
        return sa.true()
    return sa.or_(*(_some(_servers(slot, root)) for slot in slots))


def condition_tests(slots: Collection[model.Slot], root: Root) -> list[Clause]:
    """Tests whether each slot finds somebody who has what it asks for beside resources.

    For clouds in which nobody shares.
    """
    choosy = {
        _conditions(slot.group): slot
        for slot in slots
        if slot.group.member_of or (slot.granular and slot.group.required)
    }
    tests = [_some(_servers(slot, root, with_stock=False)) for slot in choosy.values()]
    return tests[:MOST_SLOT_TESTS]


def _conditions(group: model.Group[int]) -> tuple[Any, ...]:
    """What tells the servers of two groups apart."""
    return (
        bool(group.suffix),
        group.required,
        group.forbidden,
        group.member_of,
        group.forbidden_aggregates,
        group.in_tree,
    )


def _servers(slot: model.Slot, root: Root, with_stock: bool = True) -> sa.Select[Any]:
    """Providers of the root's tree that could serve the slot."""
    statement = _in_tree(_SERVER, root).where(*_meets_conditions(slot.group, _SERVER, root))
    for number, (class_id, amount) in enumerate(_largest(slot) if with_stock else ()):
        inventory = _inventory(number)
        statement = statement.join(
            inventory, inventory.c.resource_provider_id == _SERVER.c.id
        ).where(
            clauses.unsought(inventory.c.resource_class_id) == class_id,
            _has_stock(number, amount),
        )
    return statement


def _serves(slot: model.Slot) -> Clause:
    """Whether the member of a tree could serve the slot."""
    tests = _meets_conditions(slot.group, _MEMBER, ROOT_OF_MEMBER)
    for class_id, amount in _largest(slot):
        rows: sa.Select[Any] = (
            sa.select(sa.literal_column('1'))
            .where(
                _inventory(0).c.resource_provider_id == _MEMBER.c.id,
                _inventory(0).c.resource_class_id == class_id,
                _has_stock(0, amount),
            )
            .correlate(_MEMBER)
        )
        tests.append(_some(rows))
    return sa.and_(sa.true(), *tests)


def _largest(slot: model.Slot) -> list[tuple[int, int]]:
    """The amounts of the slot that are most likely to be too much."""
    return sorted(slot.amounts, key=lambda item: -item[1])[:MOST_SLOT_TESTS]


# To make the expressions takes longer than most databases take for a hundred trees, and requests
# ask for the same amounts over and over.
@functools.lru_cache(maxsize=256)
def _has_stock(number: int, amount: int) -> Clause:
    """Whether the inventory of this number has an amount to give."""
    return clauses.can_serve(_inventory(number), amount, _TOLERANCE)


def _meets_conditions(group: model.Group[int], provider: sa.FromClause, root: Root) -> list[Clause]:
    """What a group asks of one provider beside resources."""
    tests: list[Clause] = []
    if group.suffix:
        tests += [_some(_has_trait(provider.c.id, any_set)) for any_set in group.required]
    if group.forbidden:
        tests.append(_none(_has_trait(provider.c.id, group.forbidden)))
    if group.forbidden_aggregates:
        tests.append(_none(_in_aggregate(provider.c.id, group.forbidden_aggregates)))
    if group.member_of:
        inside = _in_all(provider.c.id, group.member_of)
        # An aggregate of the root spans its tree, but not for suffixed groups.
        tests.append(inside if group.suffix else sa.or_(inside, _in_all(root, group.member_of)))
    return tests


def _in_tree(provider: sa.FromClause, root: Root) -> sa.Select[Any]:
    return (
        sa.select(sa.literal_column('1'))
        .select_from(provider)
        .where(provider.c.root_provider_id == root)
        .correlate(_ROOT, _MEMBER)
    )


def _linked(aggregate_ids: Collection[int], root: Root) -> Clause:
    """Whether anybody of the root's tree is in one of the aggregates."""
    link = _AGGREGATE_LINK.c
    return _some(
        _in_tree(_SERVER, root)
        .join(_AGGREGATE_LINK, link.resource_provider_id == _SERVER.c.id)
        .where(link.aggregate_id.in_(_listed(aggregate_ids)))
    )


def _in_all(provider_id: sa.ColumnElement[int], sets: Iterable[frozenset[int]]) -> Clause:
    return sa.and_(*(_some(_in_aggregate(provider_id, any_set)) for any_set in sets))


def _has_trait(provider_id: sa.ColumnElement[int], ids: Collection[int]) -> sa.Select[Any]:
    return _links(_TRAIT_LINK, 'trait_id', provider_id, ids)


def _in_aggregate(provider_id: sa.ColumnElement[int], ids: Collection[int]) -> sa.Select[Any]:
    return _links(_AGGREGATE_LINK, 'aggregate_id', provider_id, ids)


def _links(
    link: sa.FromClause, column: str, provider_id: sa.ColumnElement[int], ids: Collection[int]
) -> sa.Select[Any]:
    return (
        sa.select(sa.literal_column('1'))
        .where(link.c.resource_provider_id == provider_id, link.c[column].in_(_listed(ids)))
        .correlate(provider_id.table)
    )


def _some(rows: sa.Select[Any]) -> Clause:
    return rows.limit(1).scalar_subquery().is_not(None)


def _none(rows: sa.Select[Any]) -> Clause:
    return rows.limit(1).scalar_subquery().is_(None)
