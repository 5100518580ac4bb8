"""GET /resource_providers: list the providers that match all filters.

The filter `in_tree` selects all providers of one tree. Every other filter applies to each provider
itself, without regard to the other providers of its tree.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from placement import exception
from placement.db import engine, expressions, names, sql
from placement.db.sqlalchemy import models
from placement.objects import resource_class

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_TRAIT_ID = models.resource_provider_traits.c.trait_id
_AGGREGATE_ID = models.resource_provider_aggregates.c.aggregate_id


def _uuid_of(provider_id: sa.ColumnElement[Any]) -> sa.ScalarSelect[str]:
    related = _PROVIDERS.alias()
    return (
        sa.select(related.c.uuid)
        .where(related.c.id == provider_id)
        .correlate(_PROVIDERS)
        .scalar_subquery()
    )


# One JSON array, as text, for each provider. A second statement for the UUIDs of parents and roots
# would miss a tree that is deleted or moved between the two statements.
# PERF: database drivers fetch one text faster than a row of seven values. A read of 1,000 providers
# takes 2.8 instead of 6.2 ms of processor time (MariaDB, 2026-11). For a root, no other row has to
# be read (7 % of a list of 1,000 roots on SQLite).
# In JSON, every database engine formats timestamps as ISO 8601. The result of a cast to text would
# depend on session settings, such as DateStyle of PostgreSQL.
_AS_JSON = sql.JsonArray(
    _ID,
    _PROVIDERS.c.uuid,
    _PROVIDERS.c.name,
    models.generation(_PROVIDERS),
    sa.case((_PARENT_ID.is_not(None), _uuid_of(_PARENT_ID))),
    sa.case((_ROOT_ID == _ID, _PROVIDERS.c.uuid), else_=_uuid_of(_ROOT_ID)),
    sa.func.coalesce(_PROVIDERS.c.updated_at, _PROVIDERS.c.created_at),
)
_SELECT = sa.select(sa.cast(_AS_JSON, sa.Text)).where(_ROOT_ID.is_not(None)).order_by(_ID)

# The maximum number of any-sets of traits or aggregates that the database evaluates.
_MOST_CONDITIONS = 16
AnyOf = frozenset[str]
Clause = sa.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a request. Placement returns the providers that match all filters.

    :param member_of: sets of aggregate UUIDs; a provider must be in at least one aggregate of each
        set
    :param forbidden_aggregates: a provider must not be in any of these aggregates
    :param required: sets of trait names; a provider must have at least one trait of each set
    :param forbidden: a provider must not have any of these traits
    :param amounts: the requested amounts, keyed by class name; a provider must have enough free
        capacity for each amount
    """

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    member_of: tuple[AnyOf, ...] = ()
    forbidden_aggregates: AnyOf = frozenset()
    required: tuple[AnyOf, ...] = ()
    forbidden: AnyOf = frozenset()
    amounts: Mapping[str, int] = field(default_factory=dict)


class ListedProvider(NamedTuple):
    """A provider, as the response lists it."""

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str


class _NoMatchError(Exception):
    """One of the filters matches no provider, so the later filters are not evaluated."""


def list_matching(filters: Filters) -> tuple[list[ListedProvider], datetime.datetime | None]:
    """Return the providers that match the filters, ordered by id.

    :returns: the providers, and the time of the latest change to any of these providers
    :raises exception.UnknownTraits: a required or forbidden trait does not exist
    :raises exception.UnknownResourceClasses:
    """
    rows = engine.read(lambda conn: _matching_rows(conn, filters))
    return [ListedProvider(*row[1:6]) for row in rows], _newest(rows)


def ids_of_matching(conn: sa.Connection, filters: Filters) -> list[int]:
    """Return the ids of the providers that match the filters, in ascending order.

    :raises: the same exceptions as `list_matching`
    """
    return [row[0] for row in _matching_rows(conn, filters)]


def _matching_rows(conn: sa.Connection, filters: Filters) -> list[list[Any]]:
    """Return the matching providers as rows.

    A row consists of: id, UUID, name, generation, parent UUID, root UUID, time of the last change.
    """
    given = {'name': filters.name, 'uuid': filters.uuid}
    identity = {column: value for column, value in given.items() if value}
    try:
        conditions = _conditions(conn, filters)
    except _NoMatchError:
        return []
    statement = _select_by_identity(tuple(identity))
    # PERF: `where` copies the statement, and SQLAlchemy computes the cache key of the copy again. A
    # request by name would take 1.3 times as long (2026-11).
    if conditions:
        statement = statement.where(*conditions)
    texts = [row[0] for row in conn.execute(statement, identity).all()]
    rows: list[list[Any]] = orjson.loads(f'[{",".join(texts)}]')
    # In a damaged database, the root of a provider may not exist. Such a provider is not listed.
    return [row for row in rows if row[5] is not None]


def _newest(rows: Sequence[Sequence[Any]]) -> datetime.datetime | None:
    latest = max((row[-1] for row in rows if row[-1]), default=None)
    return datetime.datetime.fromisoformat(latest) if latest else None


@functools.cache
def _select_by_identity(columns: tuple[str, ...]) -> sa.Select[Any]:
    """Return a select of the providers with a given name, a given UUID, or both.

    PERF: building the statement takes as long as the rest of the request (2026-11).
    """
    return _SELECT.where(*(_PROVIDERS.c[name] == sa.bindparam(name) for name in columns))


def _conditions(conn: sa.Connection, filters: Filters) -> list[Clause]:
    """Return SQL conditions for all filters except name and uuid.

    The conditions contain the ids of traits, aggregates and resource classes. A name that does not
    exist is an error, unless an earlier filter matches no provider. The order of the
    filters is: in_tree, required traits, forbidden traits, member_of, resources.

    :raises _NoMatchError: a filter matches no provider
    """
    in_tree = _in_tree(filters.in_tree)
    required, forbidden = _traits(conn, filters, in_tree)
    member_of, not_member_of = _aggregates(conn, filters)
    amounts = _amounts(conn, filters.amounts, in_tree, required, member_of)
    return [*in_tree, *required, *forbidden, *member_of, *not_member_of, *amounts]


def _in_tree(uuid: str | None) -> list[Clause]:
    if uuid is None:
        return []
    in_same_tree = _PROVIDERS.alias()
    root_id = sa.select(in_same_tree.c.root_provider_id).where(in_same_tree.c.uuid == uuid)
    return [_PROVIDERS.c.root_provider_id == root_id.scalar_subquery()]


def _traits(
    conn: sa.Connection, filters: Filters, in_tree: Sequence[Clause]
) -> tuple[list[Clause], list[Clause]]:
    """Return two lists of conditions: for the required traits, and for the forbidden traits."""
    if not filters.required and not filters.forbidden:
        return [], []
    ids = _ids(conn, models.traits.c.name, [*filters.required, filters.forbidden])
    if unknown := frozenset().union(*filters.required) - ids.keys():
        _require_matches(conn, in_tree)
        raise exception.UnknownTraits(unknown)
    any_sets = [frozenset(ids[name] for name in any_of) for any_of in filters.required]
    required = _in_each(conn, expressions.has_any_trait, _TRAIT_ID, any_sets)
    if unknown := filters.forbidden - ids.keys():
        _require_matches(conn, in_tree, required)
        raise exception.UnknownTraits(unknown)
    forbidden = [ids[name] for name in filters.forbidden]
    return required, [~expressions.has_any_trait(_ID, forbidden)] if forbidden else []


def _aggregates(conn: sa.Connection, filters: Filters) -> tuple[list[Clause], list[Clause]]:
    """Return two lists of conditions: for the required, and for the forbidden aggregates."""
    if not filters.member_of and not filters.forbidden_aggregates:
        return [], []
    column = models.placement_aggregates.c.uuid
    sets = [*filters.member_of, filters.forbidden_aggregates]
    stored = _ids(conn, column, sets)
    ids = names.ids(conn, column, frozenset().union(*sets), stored)
    existing = [
        frozenset(ids[uuid] for uuid in any_of if uuid in ids) for any_of in filters.member_of
    ]
    if not all(existing):
        raise _NoMatchError
    required = _in_each(conn, expressions.in_any_aggregate, _AGGREGATE_ID, existing)
    forbidden = [ids[uuid] for uuid in filters.forbidden_aggregates if uuid in ids]
    return required, [~expressions.in_any_aggregate(_ID, forbidden)] if forbidden else []


def _in_each(
    conn: sa.Connection,
    in_any: Callable[[sa.ColumnElement[int], Collection[int]], Clause],
    linked_id: sa.Column[int],
    any_sets: Sequence[frozenset[int]],
) -> list[Clause]:
    """Return conditions that are true if a provider has at least one element of each set.

    A statement with one condition for each of 18,000 sets took 10 seconds and 280 MiB to build, and
    was too large for SQLite (2026-11). If there are many sets, the database therefore evaluates the
    smallest ones, and this function evaluates the others.

    :param in_any: returns the condition for one set
    :param linked_id: the column with the ids of the traits or of the aggregates of a provider
    """
    sets = sorted(dict.fromkeys(any_sets), key=len)
    conditions = [in_any(_ID, any_set) for any_set in sets[:_MOST_CONDITIONS]]
    others = sets[_MOST_CONDITIONS:]
    if not others:
        return conditions

    @functools.cache  # Many providers have the same traits.
    def matches(ids: frozenset[int]) -> bool:
        return not any(any_set.isdisjoint(ids) for any_set in others)

    links = linked_id.table
    linked: dict[int, set[int]] = defaultdict(set)
    for id_, element in conn.execute(
        sa.select(_ID, linked_id)
        .join(links, links.c.resource_provider_id == _ID)
        .where(*conditions)
    ):
        linked[id_].add(element)
    matching = [id_ for id_, elements in linked.items() if matches(frozenset(elements))]
    return [_ID.in_(expressions.id_list(matching))]


def _amounts(
    conn: sa.Connection, amounts: Mapping[str, int], *earlier: Sequence[Clause]
) -> list[Clause]:
    """Return conditions for the requested amounts.

    :param amounts: the requested amounts, keyed by class name
    :param earlier: the conditions of each earlier filter
    """
    try:
        ids = resource_class.ids(conn, amounts)
    except exception.UnknownResourceClasses:
        _require_matches(conn, *earlier)
        raise
    return [expressions.fits(_ID, ids[name], amount) for name, amount in amounts.items()]


def _ids(conn: sa.Connection, column: sa.Column[Any], sets: Collection[AnyOf]) -> dict[str, int]:
    """Return the ids of the rows with these names in a column, keyed by stored name."""
    requested = sorted(frozenset().union(*sets))
    rows = conn.execute(sa.select(column, column.table.c.id).where(column.in_(requested)))
    return {row[0]: row[1] for row in rows}


def _require_matches(conn: sa.Connection, *filters: Sequence[Clause]) -> None:
    """Check that each filter, evaluated alone, matches at least one provider.

    :param filters: the conditions of each filter; a filter without conditions matches all providers
    :raises _NoMatchError: a filter matches no provider
    """
    matched = [
        expressions.has_rows(sa.select(_ID).where(*filter_)) for filter_ in filters if filter_
    ]
    if matched and not all(conn.execute(sa.select(*matched)).one()):
        raise _NoMatchError
