"""GET /resource_providers: the providers that match all filters.

`in_tree` applies to the tree of a provider. Every other filter applies to the provider *itself*.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from placement import exception
from placement.db import clauses, engine, json_sql, names
from placement.db.sqlalchemy import models
from placement.objects import resource_class

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_CHANGED_AT = sa.func.coalesce(_PROVIDERS.c.updated_at, _PROVIDERS.c.created_at)


def _select(parent: sa.ColumnElement[Any], root: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select of one JSON text for each provider.

    PERF: drivers are slower with seven values in a row than with one text.

    The database converts the timestamp to JSON, which is ISO 8601 on every engine. A cast to text
    would depend on the session (DateStyle of PostgreSQL).

    :param parent: the value for the parent, NULL for a root
    :param root: the value for the root
    """
    values = json_sql.JsonArray(
        _ID,
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.name,
        _PROVIDERS.c.generation,
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


# The list of all providers contains their parents and roots, so their ids are sufficient.
_SELECT_ALL = _select(_PARENT_ID, _ROOT_ID)
# The same statement reads the UUIDs. With a second one, the response would be incomplete for a tree
# that is deleted or moved between the two. PERF: in most clouds most providers are roots, for which
# nothing has to be looked up.
_SELECT_SOME = _select(
    sa.case((_PARENT_ID.is_not(None), _uuid_of(_PARENT_ID))),
    sa.case((_ROOT_ID == _ID, _PROVIDERS.c.uuid), else_=_uuid_of(_ROOT_ID)),
)
AnyOf = frozenset[str]
Clause = sa.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a request. A provider has to match all of them.

    `member_of` and `required` are sets of alternatives: at least one aggregate (trait) of each set
    is required. `amounts`, by resource class, have to fit in the free capacity of the provider.
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
    """A provider in the list of the response."""

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str


class _NoMatchError(Exception):
    """No provider matches a filter, so that later filters are not evaluated."""


def list_matching(filters: Filters) -> tuple[list[ListedProvider], datetime.datetime | None]:
    """Return the providers that match the filters, ordered by id.

    :returns: the providers, and the time of the newest change to one of them
    :raises exception.UnknownTraits: a required or forbidden trait does not exist
    :raises exception.UnknownResourceClasses:
    """
    with engine.reader() as conn:
        try:
            conditions = _conditions(conn, filters)
        except _NoMatchError:
            return [], None
        rows = _rows(conn, _identity(filters), conditions)
    # In a damaged database, the root of a provider may not exist. Such a provider is not listed.
    rows = [row for row in rows if row[5] is not None]
    return [ListedProvider(*row[1:6]) for row in rows], _newest(rows)


def _rows(
    conn: sa.Connection, identity: Mapping[str, str], conditions: Sequence[Clause]
) -> list[list[Any]]:
    """Return rows (id, UUID, name, generation, parent's UUID, root's UUID, time of change)."""
    if not identity and not conditions:
        return _all_rows(conn)
    statement = _select_by_identity(tuple(identity))
    if conditions:
        statement = statement.where(*conditions)
    return _read(conn, statement, identity)


def _all_rows(conn: sa.Connection) -> list[list[Any]]:
    """Return the rows of all providers, in the form of `_rows`."""
    rows = _read(conn, _SELECT_ALL, {})
    uuids = {None: None, **{row[0]: row[1] for row in rows}}
    if not all(row[4] in uuids and row[5] in uuids for row in rows):
        # A damaged database: a provider refers to one that has no root, or that does not exist.
        return _read(conn, _SELECT_SOME, {})
    for row in rows:
        row[4], row[5] = uuids[row[4]], uuids[row[5]]
    return rows


def _read(
    conn: sa.Connection, statement: sa.Select[Any], parameters: Mapping[str, str]
) -> list[list[Any]]:
    texts = conn.execute(statement, parameters).scalars()
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
    """Return the select by these columns (name, uuid), the same object for each request.

    PERF: these are the most frequent filters.
    """
    return _SELECT_SOME.where(*(_PROVIDERS.c[name] == sa.bindparam(name) for name in columns))


def _conditions(conn: sa.Connection, filters: Filters) -> list[Clause]:
    """Return clauses for all filters except name and uuid, with ids in place of names.

    An unknown name is an error, unless an earlier filter matches no provider at all. The order of
    the filters is: in_tree, required traits, forbidden traits, member_of, resources.

    :raises _NoMatchError:
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
    """Return clauses for the required traits, and for the forbidden traits."""
    ids = _ids(conn, models.traits.c.name, [*filters.required, filters.forbidden])
    if unknown := frozenset().union(*filters.required) - ids.keys():
        _require_matches(conn, in_tree)
        raise exception.UnknownTraits(unknown)
    required = [
        clauses.has_any_trait(_ID, [ids[name] for name in any_of]) for any_of in filters.required
    ]
    if unknown := filters.forbidden - ids.keys():
        _require_matches(conn, in_tree, required)
        raise exception.UnknownTraits(unknown)
    forbidden = [ids[name] for name in filters.forbidden]
    return required, [~clauses.has_any_trait(_ID, forbidden)] if forbidden else []


def _aggregates(conn: sa.Connection, filters: Filters) -> tuple[list[Clause], list[Clause]]:
    """Return clauses for the required aggregates, and for the forbidden aggregates."""
    column = models.placement_aggregates.c.uuid
    sets = [*filters.member_of, filters.forbidden_aggregates]
    stored = _ids(conn, column, sets)
    ids = names.ids(conn, column, frozenset().union(*sets), stored)
    existing = [[ids[uuid] for uuid in any_of if uuid in ids] for any_of in filters.member_of]
    if not all(existing):
        raise _NoMatchError
    required = [clauses.in_any_aggregate(_ID, any_of) for any_of in existing]
    forbidden = [ids[uuid] for uuid in filters.forbidden_aggregates if uuid in ids]
    return required, [~clauses.in_any_aggregate(_ID, forbidden)] if forbidden else []


def _amounts(
    conn: sa.Connection, amounts: Mapping[str, int], *earlier: Sequence[Clause]
) -> list[Clause]:
    """Return clauses for the requested amounts.

    :param earlier: the clauses of each earlier filter
    """
    try:
        ids = resource_class.ids(conn, amounts)
    except exception.UnknownResourceClasses:
        _require_matches(conn, *earlier)
        raise
    return [clauses.fits(_ID, ids[name], amount) for name, amount in amounts.items()]


def _ids(conn: sa.Connection, column: sa.Column[Any], sets: Collection[AnyOf]) -> dict[str, int]:
    """Return the ids of the rows that the database finds by these names, by stored name."""
    requested = sorted(frozenset().union(*sets))
    if not requested:
        return {}
    rows = conn.execute(sa.select(column, column.table.c.id).where(column.in_(requested)))
    return {row[0]: row[1] for row in rows}


def _require_matches(conn: sa.Connection, *filters: Sequence[Clause]) -> None:
    """Check that each filter, by itself, matches a provider. A filter without clauses does.

    :raises _NoMatchError:
    """
    matched = [clauses.has_rows(sa.select(_ID).where(*filter_)) for filter_ in filters if filter_]
    if matched and not all(conn.execute(sa.select(*matched)).one()):
        raise _NoMatchError
