"""GET /resource_providers: list the providers that match all filters.

The filter `in_tree` selects all providers of one tree. Every other filter applies to each provider
itself, without regard to the other providers of its tree.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from placement import exception
from placement.db import engine, names, provider_conditions, sql
from placement.db.sqlalchemy import models
from placement.objects import resource_class

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_CHANGED_AT = sa.func.coalesce(_PROVIDERS.c.updated_at, _PROVIDERS.c.created_at)


def _select(parent: sa.ColumnElement[Any], root: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select that returns one JSON array, as text, for each provider.

    PERF: database drivers fetch one text faster than a row of seven values. A read of 1,000
    providers takes 2.8 instead of 6.2 ms of processor time (MariaDB, 2026-11).

    In JSON, every database engine formats timestamps as ISO 8601. The result of a cast to text
    would depend on session settings, such as DateStyle of PostgreSQL.

    :param parent: the expression for the parent of a provider; NULL for a root provider
    :param root: the expression for the root of a provider
    """
    values = sql.JsonArray(
        _ID,
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.name,
        models.generation(_PROVIDERS),
        parent,
        root,
        _CHANGED_AT,
    )
    return sa.select(sa.cast(values, sa.Text)).where(_ROOT_ID.is_not(None)).order_by(_ID)


def _uuid_of(provider_id: sa.ColumnElement[Any]) -> sa.ScalarSelect[str]:
    related = _PROVIDERS.alias()
    return (
        sa.select(related.c.uuid)
        .where(related.c.id == provider_id)
        .correlate(_PROVIDERS)
        .scalar_subquery()
    )


# The list of all providers includes all parents and roots. The statement therefore reads only the
# ids of parents and roots, and `_all_rows` replaces these ids with UUIDs.
_SELECT_ALL = _select(_PARENT_ID, _ROOT_ID)
# This statement also reads the UUIDs of parents and roots. If a second statement read these UUIDs,
# the response would be incomplete for a tree that is deleted or moved between the two statements.
# PERF: in most clouds, most providers are roots. For a root, no other row has to be read (7 % of a
# list of 1,000 providers on SQLite, 2026-11).
_SELECT_SOME = _select(
    sa.case((_PARENT_ID.is_not(None), _uuid_of(_PARENT_ID))),
    sa.case((_ROOT_ID == _ID, _PROVIDERS.c.uuid), else_=_uuid_of(_ROOT_ID)),
)


def _linked_ids(column: sa.Column[int]) -> sa.ScalarSelect[str]:
    """Return the ids in this column that belong to a provider, as a JSON array."""
    return (
        sa.select(sql.JsonList(column))
        .where(column.table.c.resource_provider_id == _ID)
        .correlate(_PROVIDERS)
        .scalar_subquery()
    )


_TRAITS = _linked_ids(models.resource_provider_traits.c.trait_id)
_AGGREGATES = _linked_ids(models.resource_provider_aggregates.c.aggregate_id)
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
    try:
        rows = _rows(conn, _identity(filters), _conditions(conn, filters))
    except _NoMatchError:
        return []
    # In a damaged database, the root of a provider may not exist. Such a provider is not listed.
    return [row for row in rows if row[5] is not None]


def _rows(
    conn: sa.Connection, identity: Mapping[str, str], conditions: Sequence[Clause]
) -> list[list[Any]]:
    """Return the matching providers as rows.

    A row consists of: id, UUID, name, generation, parent UUID, root UUID, time of the last change.
    """
    if not identity and not conditions:
        return _all_rows(conn)
    statement = _select_by_identity(tuple(identity))
    if conditions:
        statement = statement.where(*conditions)
    return _read(conn, statement, identity)


def _all_rows(conn: sa.Connection) -> list[list[Any]]:
    """Return the rows of all providers, in the same form as `_rows`."""
    rows = _read(conn, _SELECT_ALL, {})
    uuids = {None: None, **{row[0]: row[1] for row in rows}}
    if not all(row[4] in uuids and row[5] in uuids for row in rows):
        # In a damaged database, a parent or root may not exist or may have no root itself. The list
        # does not contain such a provider, so read its UUID with the other statement.
        return _read(conn, _SELECT_SOME, {})
    for row in rows:
        row[4], row[5] = uuids[row[4]], uuids[row[5]]
    return rows


def _read(
    conn: sa.Connection, statement: sa.Select[Any], parameters: Mapping[str, str]
) -> list[list[Any]]:
    texts = [row[0] for row in conn.execute(statement, parameters).all()]
    rows: list[list[Any]] = orjson.loads(f'[{",".join(texts)}]')
    return rows


def _newest(rows: Sequence[Sequence[Any]]) -> datetime.datetime | None:
    latest = max((row[-1] for row in rows if row[-1]), default=None)
    return datetime.datetime.fromisoformat(latest) if latest else None


def _identity(filters: Filters) -> dict[str, str]:
    values = {'name': filters.name, 'uuid': filters.uuid}
    return {column: value for column, value in values.items() if value}


@functools.cache
def _select_by_identity(columns: tuple[str, ...]) -> sa.Select[Any]:
    """Return a select of the providers with a given name, a given UUID, or both.

    PERF: building the statement takes as long as the rest of the request (2026-11).
    """
    return _SELECT_SOME.where(*(_PROVIDERS.c[name] == sa.bindparam(name) for name in columns))


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
    required = _in_each(conn, provider_conditions.has_any_trait, _TRAITS, any_sets)
    if unknown := filters.forbidden - ids.keys():
        _require_matches(conn, in_tree, required)
        raise exception.UnknownTraits(unknown)
    forbidden = [ids[name] for name in filters.forbidden]
    return required, [~provider_conditions.has_any_trait(_ID, forbidden)] if forbidden else []


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
    required = _in_each(conn, provider_conditions.in_any_aggregate, _AGGREGATES, existing)
    forbidden = [ids[uuid] for uuid in filters.forbidden_aggregates if uuid in ids]
    return required, [~provider_conditions.in_any_aggregate(_ID, forbidden)] if forbidden else []


def _in_each(
    conn: sa.Connection,
    in_any: Callable[[sa.ColumnElement[int], Collection[int]], Clause],
    linked_ids: sa.ScalarSelect[str],
    any_sets: Sequence[frozenset[int]],
) -> list[Clause]:
    """Return conditions that are true if a provider has at least one element of each set.

    A statement with one condition for each of 18,000 sets took 10 seconds and 280 MiB to build, and
    was too large for SQLite (2026-11). If there are many sets, the database therefore evaluates the
    smallest ones, and this function evaluates the others.

    :param in_any: returns the condition for one set
    :param linked_ids: the traits or the aggregates of a provider
    """
    sets = sorted(dict.fromkeys(any_sets), key=len)
    conditions = [in_any(_ID, any_set) for any_set in sets[:_MOST_CONDITIONS]]
    if len(sets) <= _MOST_CONDITIONS:
        return conditions
    rows = conn.execute(sa.select(linked_ids, _ID).where(*conditions))
    by_text: dict[str | None, list[int]] = defaultdict(list)  # many providers have the same traits
    for text, id_ in rows:
        by_text[text].append(id_)
    matches = _matcher(sets[_MOST_CONDITIONS:])
    matching = [
        id_ for text, ids in by_text.items() if matches(orjson.loads(text or '[]')) for id_ in ids
    ]
    return [_ID.in_(provider_conditions.id_list(matching))] if matching else [sa.false()]


def _matcher(any_sets: Iterable[frozenset[int]]) -> Callable[[Collection[int]], bool]:
    """Return a function that returns whether ids include at least one element of each set."""
    # A provider can have nearly all elements, and then satisfies nearly all sets. Therefore, a set
    # is examined only if the provider does not have its smallest element.
    by_element: dict[int, list[frozenset[int]]] = defaultdict(list)
    for any_set in any_sets:
        by_element[min(any_set)].append(any_set)

    def matches(ids: Collection[int]) -> bool:
        present = frozenset(ids)
        return not any(
            any_set.isdisjoint(present)
            for element in by_element.keys() - present
            for any_set in by_element[element]
        )

    return matches


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
    return [provider_conditions.fits(_ID, ids[name], amount) for name, amount in amounts.items()]


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
        provider_conditions.has_rows(sa.select(_ID).where(*filter_))
        for filter_ in filters
        if filter_
    ]
    if matched and not all(conn.execute(sa.select(*matched)).one()):
        raise _NoMatchError
