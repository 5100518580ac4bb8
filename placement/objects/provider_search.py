"""GET /resource_providers: the providers that meet all filters. Each filter looks at the
provider *itself*, but for `in_tree`, which looks at its tree.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from placement import db_api, exception
from placement.db import clauses, names
from placement.db.sqlalchemy import models
from placement.objects import resource_class

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_CHANGED = sa.func.coalesce(_PROVIDERS.c.updated_at, _PROVIDERS.c.created_at)


def _select(parent: sa.ColumnElement[Any], root: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """A select of one JSON text for each provider: drivers need long for seven values a row.

    The timestamp goes into the JSON as it is. A cast to text would depend on the session
    (PostgreSQL: DateStyle), while JSON is ISO 8601 on every engine.

    :param parent: what to read of the parent, and
    :param root: of the root, which is not NULL if the provider is visible
    """
    facts = sa.func.json_array(
        _ID, _PROVIDERS.c.uuid, _PROVIDERS.c.name, _PROVIDERS.c.generation, parent, root, _CHANGED
    )
    return sa.select(sa.cast(facts, sa.Text)).where(_ROOT_ID.is_not(None)).order_by(_ID)


def _uuid_of(provider_id: sa.ColumnElement[Any]) -> sa.ScalarSelect[str]:
    related = _PROVIDERS.alias()
    return (
        sa.select(related.c.uuid)
        .where(related.c.id == provider_id)
        .correlate(_PROVIDERS)
        .scalar_subquery()
    )


# The list of all providers contains their parents and roots, so ids are enough to find them in it.
_SELECT_ALL = _select(_PARENT_ID, _ROOT_ID)
# Uuids are read by the same statement: with a second one, a tree that is deleted or moved between
# the two would be incomplete. Most providers of most clouds are roots, and need no look-up.
_SELECT_SOME = _select(
    sa.case((_PARENT_ID.is_not(None), _uuid_of(_PARENT_ID))),
    sa.case((_ROOT_ID == _ID, _PROVIDERS.c.uuid), else_=_uuid_of(_ROOT_ID)),
)
AnyOf = frozenset[str]
Clause = sa.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Filters:
    """What to look for; every filter that is given has to be met.

    `member_of` and `required` are lists of any-sets: of each set, one aggregate (trait) at least.
    `amounts` are what the provider must be able to serve, by resource class.
    """

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    member_of: tuple[AnyOf, ...] = ()
    forbidden_aggregates: AnyOf = frozenset()
    required: tuple[AnyOf, ...] = ()
    forbidden: AnyOf = frozenset()
    amounts: Mapping[str, int] = field(default_factory=dict)


class Found(NamedTuple):
    """What is shown of a provider in a list."""

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str


class _Nothing(Exception):
    """No provider can meet the filters, so the rest of them is not looked at."""


def find(filters: Filters) -> tuple[list[Found], datetime.datetime | None]:
    """The providers that meet the filters, oldest first.

    :returns: the providers, and when the newest change to one of them was
    :raises exception.UnknownTraits: a required or forbidden trait does not exist
    :raises exception.UnknownResourceClasses:
    """
    with db_api.reader() as conn:
        try:
            wanted = _conditions(conn, filters)
        except _Nothing:
            return [], None
        rows = _rows(conn, _identity(filters), wanted)
    # In a damaged database a provider may name a root that does not exist. It is not shown.
    rows = [row for row in rows if row[5] is not None]
    return [Found(*row[1:6]) for row in rows], _newest(rows)


def _rows(
    conn: sa.Connection, identity: Mapping[str, str], wanted: Sequence[Clause]
) -> list[list[Any]]:
    """Rows (id, uuid, name, generation, uuid of the parent, uuid of the root, time of change)."""
    if not identity and not wanted:
        return _all(conn)
    statement = _of_identity(tuple(identity))
    if wanted:
        statement = statement.where(*wanted)
    return _read(conn, statement, identity)


def _all(conn: sa.Connection) -> list[list[Any]]:
    """The rows of all providers."""
    rows = _read(conn, _SELECT_ALL, {})
    uuids = {None: None, **{row[0]: row[1] for row in rows}}
    if not all(row[4] in uuids and row[5] in uuids for row in rows):
        # A damaged database: a provider is not listed, or does not exist, and others name it.
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
    given = {'name': filters.name, 'uuid': filters.uuid}
    return {column: value for column, value in given.items() if value}


@functools.cache
def _of_identity(columns: tuple[str, ...]) -> sa.Select[Any]:
    """What is asked for most, by name or uuid, is the same statement each time."""
    return _SELECT_SOME.where(*(_PROVIDERS.c[name] == sa.bindparam(name) for name in columns))


def _conditions(conn: sa.Connection, filters: Filters) -> list[Clause]:
    """What the filters other than name and uuid ask for, with ids in place of names.

    A name that does not exist is an error, unless an earlier filter matches no provider: the
    order of the filters is in_tree, required, forbidden traits, member_of, resources. Each of
    them is then taken by itself, over all providers.
    """
    tree = _in_tree(filters.in_tree)
    required, forbidden = _traits(conn, filters, tree)
    inside, outside = _aggregates(conn, filters)
    amounts = _amounts(conn, filters.amounts, tree, required, inside)
    return [*tree, *required, *forbidden, *inside, *outside, *amounts]


def _in_tree(uuid: str | None) -> list[Clause]:
    if uuid is None:
        return []
    named = _PROVIDERS.alias()
    root_id = sa.select(named.c.root_provider_id).where(named.c.uuid == uuid)
    return [_PROVIDERS.c.root_provider_id == root_id.scalar_subquery()]


def _traits(
    conn: sa.Connection, filters: Filters, tree: Sequence[Clause]
) -> tuple[list[Clause], list[Clause]]:
    """Clauses for the required and for the forbidden traits."""
    ids = _ids(conn, models.traits.c.name, [*filters.required, filters.forbidden])
    if unknown := frozenset().union(*filters.required) - ids.keys():
        _require_some(conn, tree)
        raise exception.UnknownTraits(unknown)
    required = [
        clauses.has_any_trait(_ID, [ids[name] for name in any_of]) for any_of in filters.required
    ]
    if unknown := filters.forbidden - ids.keys():
        _require_some(conn, tree, required)
        raise exception.UnknownTraits(unknown)
    barred = [ids[name] for name in filters.forbidden]
    return required, [~clauses.has_any_trait(_ID, barred)] if barred else []


def _aggregates(conn: sa.Connection, filters: Filters) -> tuple[list[Clause], list[Clause]]:
    """Clauses for the aggregates to be in, and for those not to be in."""
    column, sets = models.placement_aggregates.c.uuid, [*filters.member_of]
    sets.append(filters.forbidden_aggregates)
    stored = _ids(conn, column, sets)
    ids = names.ids(conn, column, frozenset().union(*sets), stored)
    found = [[ids[uuid] for uuid in any_of if uuid in ids] for any_of in filters.member_of]
    if not all(found):
        raise _Nothing
    inside = [clauses.in_any_aggregate(_ID, any_of) for any_of in found]
    barred = [ids[uuid] for uuid in filters.forbidden_aggregates if uuid in ids]
    return inside, [~clauses.in_any_aggregate(_ID, barred)] if barred else []


def _amounts(
    conn: sa.Connection, amounts: Mapping[str, int], *earlier: Sequence[Clause]
) -> list[Clause]:
    """Clauses for the amounts to serve; `earlier` are those of filters that come before."""
    try:
        ids = resource_class.ids(conn, amounts)
    except exception.UnknownResourceClasses:
        _require_some(conn, *earlier)
        raise
    return [clauses.fits(_ID, ids[name], amount) for name, amount in amounts.items()]


def _ids(conn: sa.Connection, name: sa.Column[Any], sets: Collection[AnyOf]) -> dict[str, int]:
    """The ids of the rows that the database finds by these names, by stored name."""
    requested = sorted(frozenset().union(*sets))
    if not requested:
        return {}
    rows = conn.execute(sa.select(name, name.table.c.id).where(name.in_(requested)))
    return {row[0]: row[1] for row in rows}


def _require_some(conn: sa.Connection, *filters: Sequence[Clause]) -> None:
    """Check that each of the filters matches a provider. An empty one matches all.

    :raises _Nothing:
    """
    matched = [clauses.found(sa.select(_ID).where(*wanted)) for wanted in filters if wanted]
    if matched and not all(conn.execute(sa.select(*matched)).one()):
        raise _Nothing
