"""What the search reads: names, and pages of trees. Only `snapshot` executes it.

A page of trees is one statement that finds its roots and reads them: for every provider one row,
whose traits, aggregates and stock are JSON arrays made by the database, because rows cost more
than bytes. Which roots are on it is decided by the tests in `root_tests`.
"""

from collections.abc import Collection, Iterable, Sequence
import functools
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.candidates import model
from placement.candidates.root_tests import MEMBERS, ROOT_OF_MEMBER, ROOTS, Clause, in_order, serves
from placement.db import clauses
from placement.db import names as db_names
from placement.db.sqlalchemy import models

# Kinds of rows of `lookup` and `names`.
CLASS, TRAIT, AGGREGATE, TREE, SHARING = 'class', 'trait', 'aggregate', 'tree', 'sharing'

_PROVIDERS = models.resource_providers
_TRAITS = models.resource_provider_traits
_AGGREGATES = models.resource_provider_aggregates

# What a page reads, and what its lists call their rows. Made once: an alias costs more than the
# rest of a statement.
_PROVIDER = _PROVIDERS.alias('provider')
_STOCK = models.inventories.alias('stock')
_TRAIT_LINK = _TRAITS.alias('trait_link')
_AGGREGATE_LINK = _AGGREGATES.alias('aggregate_link')


# Names ------------------------------------------------------------------------


# What is named: the column with the name, and the id that is wanted for it.
NAMED: dict[str, tuple[sa.Column[Any], sa.Column[Any]]] = {
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
        for kind, (name, id_) in NAMED.items()
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
    return _NAMES, {CLASS: sorted(class_ids), TRAIT: sorted(trait_ids)}


def _kind(kind: str, name: sa.Column[Any], id_: sa.Column[Any]) -> sa.Select[Any]:
    return sa.select(sa.literal_column(f"'{kind}'"), db_names.spelled(name), id_)


_NAMES = sa.union_all(
    *(
        _kind(kind, *NAMED[kind]).where(
            NAMED[kind][1].in_(sa.bindparam(kind, expanding=True, literal_execute=True))
        )
        for kind in (CLASS, TRAIT)
    )
)


# Facts ------------------------------------------------------------------------


@functools.cache
def facts(with_aggregates: bool) -> sa.Select[Any]:
    """The columns that `snapshot` makes a Provider of; callers join `_PROVIDER` to something.

    What a provider has many of comes as the text of a JSON array.
    """
    record = clauses.json_numbers(
        _STOCK.c.resource_class_id,
        _STOCK.c.total,
        _STOCK.c.reserved,
        _STOCK.c.min_unit,
        _STOCK.c.max_unit,
        _STOCK.c.step_size,
        clauses.json_number(_STOCK.c.allocation_ratio),
        clauses.used(_STOCK),
    )
    return sa.select(
        _PROVIDER.c.id,
        _PROVIDER.c.uuid,
        _PROVIDER.c.root_provider_id,
        _PROVIDER.c.parent_provider_id,
        _list_of(_TRAIT_LINK, 'trait_id'),
        _list_of(_AGGREGATE_LINK, 'aggregate_id') if with_aggregates else sa.null(),
        sa.select(clauses.json_list(record))
        .select_from(_STOCK)
        .where(_STOCK.c.resource_provider_id == _PROVIDER.c.id)
        .correlate(_PROVIDER)
        .scalar_subquery(),
    )


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
# Old releases leave providers without a root, and a damaged database has roots that do not exist
# or are below other providers. None of their trees is searched, and a page must not count them.
_IS_ROOT = (
    ROOTS.c.parent_provider_id.is_(None),
    ROOTS.c.root_provider_id == ROOTS.c.id,
)
_HAS_ROOT = clauses.found(
    sa.select(sa.literal_column('1'))
    .where(ROOTS.c.id == ROOT_OF_MEMBER, *_IS_ROOT)
    .correlate(MEMBERS)
)
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
        sa.select(ROOTS.c.id)
        .where(
            *_IS_ROOT,
            ROOTS.c.id > _AFTER,
            ROOTS.c.id <= _UPTO,
            *tests,
        )
        .order_by(ROOTS.c.id)
        .limit(_SIZE)
    )
    return _facts_of_roots(few.subquery('few'), with_aggregates)


def page_of_servers(
    slot: model.Slot,
    tests: Iterable[Clause],
    others: Sequence[Clause],
    with_aggregates: bool,
) -> sa.Select[Any]:
    """The same as `page`, by way of the providers that could serve a slot by themselves.

    To look at members of trees instead of the members of each root spares one look-up for each
    tree: a fifth to a third of the time of a page on which hardly anybody fits.

    :param tests: tests of ROOT_OF_MEMBER; they are asked of each member, so they must not be
        about its tree
    :param others: tests of the other slots; they are asked last, in this order, and once for each
        tree, however many of it could serve: that is why they are a HAVING
    """
    root = ROOT_OF_MEMBER
    few = (
        sa.select(root.label('id'))
        .where(root > _AFTER, root <= _UPTO, *tests, serves(slot))
        .group_by(root)
        .order_by(root)
        .limit(_SIZE)
    )
    few = few.having(in_order([*others, _HAS_ROOT]))
    return _facts_of_roots(few.subquery('few'), with_aggregates)


def trees(root_ids: Collection[int], but: Collection[int] = ()) -> sa.Select[Any]:
    """Facts of the providers of the trees of these roots, but for some providers."""
    few = sa.select(ROOTS.c.id).where(*_IS_ROOT, ROOTS.c.id.in_(clauses.listed(root_ids)))
    statement = _facts_of_roots(few.subquery('few'), with_aggregates=True)
    return statement.where(_PROVIDER.c.id.not_in(clauses.listed(but))) if but else statement


def _facts_of_roots(few: sa.Subquery, with_aggregates: bool) -> sa.Select[Any]:
    return facts(with_aggregates).join_from(
        few, _PROVIDER, _PROVIDER.c.root_provider_id == few.c.id
    )


def sharers(
    sharing_id: int, aggregate_ids: Collection[int] | None = None, roots: Collection[int] = ()
) -> sa.Select[Any]:
    """Facts of the sharing providers: all, those in aggregates, or those of some trees."""
    statement = (
        facts(with_aggregates=True)
        .join_from(_TRAITS, _PROVIDER, _PROVIDER.c.id == _TRAITS.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == _PROVIDER.c.root_provider_id)
        .where(_TRAITS.c.trait_id == sharing_id, *_IS_ROOT)
    )
    if roots:
        statement = statement.where(_PROVIDER.c.root_provider_id.in_(clauses.listed(roots)))
    if aggregate_ids is not None:
        link = _AGGREGATE_LINK
        statement = statement.where(
            sa.exists().where(
                link.c.resource_provider_id == _PROVIDER.c.id,
                link.c.aggregate_id.in_(clauses.listed(aggregate_ids)),
            )
        )
    return statement


def root_at(position: int) -> sa.Select[Any]:
    """The id of the root at a position in the order of ids."""
    roots = sa.select(ROOTS.c.id).where(*_IS_ROOT)
    return roots.order_by(ROOTS.c.id).offset(position).limit(1)


def root_count() -> sa.Select[Any]:
    """How many trees there are."""
    return sa.select(sa.func.count(ROOTS.c.id)).where(*_IS_ROOT)


def members(aggregate_ids: Collection[int], tests: Iterable[Clause]) -> sa.Select[Any]:
    """Rows (root, aggregate): which trees have members in the aggregates."""
    link = _AGGREGATES
    return (
        _roots_of(link, tests)
        .add_columns(link.c.aggregate_id)
        .where(link.c.aggregate_id.in_(clauses.listed(aggregate_ids)))
        .distinct()
    )


def first_members(aggregate_ids: Collection[int], tests: Iterable[Clause]) -> sa.Select[Any]:
    """One tree with a member in it for each aggregate, if there is one, as rows (root,)."""
    link, aggregate = _AGGREGATES, models.placement_aggregates
    first = _roots_of(link, tests).where(link.c.aggregate_id == aggregate.c.id).limit(1)
    return sa.select(first.correlate(aggregate).scalar_subquery()).where(
        aggregate.c.id.in_(clauses.listed(aggregate_ids))
    )


def _roots_of(link: sa.FromClause, tests: Iterable[Clause]) -> sa.Select[Any]:
    """Roots that pass the tests, of the providers that rows of `link` name."""
    return (
        sa.select(ROOTS.c.id)
        .select_from(link)
        .join(MEMBERS, MEMBERS.c.id == link.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == MEMBERS.c.root_provider_id)
        .where(*_IS_ROOT, *tests)
    )
