"""GET /resource_providers: the providers that meet all filters. Each filter looks at the
provider *itself*, but for `in_tree`, which looks at its tree.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import sqlalchemy as sa

from placement import db_api, exception
from placement.db import clauses
from placement.db.sqlalchemy import models
from placement.objects import resource_class

if TYPE_CHECKING:
    from placement.context import RequestContext

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
# One text for each provider instead of seven values: the drivers are slow, and lists long.
_FACTS = sa.func.json_array(
    _PROVIDERS.c.id,
    _PROVIDERS.c.uuid,
    _PROVIDERS.c.name,
    _PROVIDERS.c.generation,
    _PROVIDERS.c.root_provider_id,
    _PROVIDERS.c.parent_provider_id,
    sa.cast(sa.func.coalesce(_PROVIDERS.c.updated_at, _PROVIDERS.c.created_at), sa.String(26)),
)
_SELECT = (
    sa.select(sa.cast(_FACTS, sa.Text))
    .where(_PROVIDERS.c.root_provider_id.is_not(None))
    .order_by(_ID)
)
AnyOf = frozenset[str]


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


def find(ctx: 'RequestContext', filters: Filters) -> tuple[list[Found], datetime.datetime | None]:
    """The providers that meet the filters, oldest first.

    :returns: the providers, and when the newest change to one of them was
    :raises exception.UnknownTraits: a required or forbidden trait does not exist
    :raises exception.UnknownResourceClasses:
    """
    with db_api.reader() as conn:
        try:
            wanted = [
                *_in_tree(conn, filters.in_tree),
                *_traits(conn, filters.required, filters.forbidden),
                *_aggregates(conn, filters),
                *_amounts(conn, filters),
            ]
        except _Nothing:
            return [], None
        rows = _rows(conn, _identity(filters), wanted)
        uuids = _uuids(conn, rows)
    found = [
        Found(uuid, name, number, uuids.get(parent_id), uuids[root_id])
        for _, uuid, name, number, root_id, parent_id, _ in rows
    ]
    return found, _newest(rows)


def _rows(
    conn: sa.Connection, identity: Mapping[str, str], wanted: Sequence[sa.ColumnElement[bool]]
) -> list[list[Any]]:
    statement = _of_identity(tuple(identity))
    if wanted:
        statement = statement.where(*wanted)
    texts = conn.execute(statement, identity).scalars()
    rows: list[list[Any]] = orjson.loads(f'[{",".join(texts)}]')
    return rows


def _uuids(conn: sa.Connection, rows: Sequence[Sequence[Any]]) -> dict[int | None, str]:
    """The uuids of the providers and of their parents and roots, by id."""
    uuids: dict[int | None, str] = {row[0]: row[1] for row in rows}
    elsewhere = {related for row in rows for related in row[4:6]} - uuids.keys() - {None}
    if elsewhere:
        columns = _PROVIDERS.c
        others = sa.select(columns.id, columns.uuid).where(columns.id.in_(sorted(elsewhere)))
        uuids.update((row[0], row[1]) for row in conn.execute(others))
    return uuids


def _newest(rows: Sequence[Sequence[Any]]) -> datetime.datetime | None:
    latest = max((row[6] for row in rows if row[6]), default=None)
    return datetime.datetime.fromisoformat(latest) if latest else None


def _identity(filters: Filters) -> dict[str, str]:
    given = {'name': filters.name, 'uuid': filters.uuid}
    return {column: value for column, value in given.items() if value}


@functools.cache
def _of_identity(columns: tuple[str, ...]) -> sa.Select[Any]:
    """What is asked for most, by name or uuid, is the same statement each time."""
    return _SELECT.where(*(_PROVIDERS.c[name] == sa.bindparam(name) for name in columns))


def _in_tree(conn: sa.Connection, uuid: str | None) -> list[sa.ColumnElement[bool]]:
    if uuid is None:
        return []
    columns = _PROVIDERS.c
    root_id = conn.execute(sa.select(columns.root_provider_id).where(columns.uuid == uuid)).scalar()
    if root_id is None:
        raise _Nothing
    return [columns.root_provider_id == root_id]


def _ids(conn: sa.Connection, name: sa.Column[Any], sets: Collection[AnyOf]) -> dict[str, int]:
    names = sorted(frozenset().union(*sets))
    if not names:
        return {}
    rows = conn.execute(sa.select(name, name.table.c.id).where(name.in_(names)))
    return {row[0]: row[1] for row in rows}


def _traits(
    conn: sa.Connection, required: Sequence[AnyOf], forbidden: AnyOf
) -> list[sa.ColumnElement[bool]]:
    ids = _ids(conn, models.traits.c.name, [*required, forbidden])
    unknown = frozenset().union(*required) - ids.keys()
    if unknown:
        raise exception.UnknownTraits(unknown)
    wanted = [clauses.has_any_trait(_ID, [ids[name] for name in any_of]) for any_of in required]
    unknown = forbidden - ids.keys()
    if unknown:
        _require_some(conn, wanted)
        raise exception.UnknownTraits(unknown)
    if forbidden:
        wanted.append(~clauses.has_any_trait(_ID, [ids[name] for name in forbidden]))
    return wanted


def _positive_aggregates(
    ids: Mapping[str, int], member_of: Sequence[AnyOf]
) -> list[sa.ColumnElement[bool]]:
    found = [[ids[uuid] for uuid in any_of if uuid in ids] for any_of in member_of]
    if not all(found):
        raise _Nothing
    return [clauses.in_any_aggregate(_ID, any_of) for any_of in found]


def _aggregates(conn: sa.Connection, filters: Filters) -> list[sa.ColumnElement[bool]]:
    ids = _ids(
        conn,
        models.placement_aggregates.c.uuid,
        [*filters.member_of, filters.forbidden_aggregates],
    )
    wanted = _positive_aggregates(ids, filters.member_of)
    barred = [ids[uuid] for uuid in filters.forbidden_aggregates if uuid in ids]
    return [*wanted, ~clauses.in_any_aggregate(_ID, barred)] if barred else wanted


def _amounts(conn: sa.Connection, filters: Filters) -> list[sa.ColumnElement[bool]]:
    try:
        ids = resource_class.ids(conn, filters.amounts)
    except exception.UnknownResourceClasses:
        if filters.member_of:
            known = _ids(conn, models.placement_aggregates.c.uuid, filters.member_of)
            _require_some(conn, _positive_aggregates(known, filters.member_of))
        raise
    return [clauses.fits(_ID, ids[name], amount) for name, amount in filters.amounts.items()]


def _require_some(conn: sa.Connection, wanted: Sequence[sa.ColumnElement[bool]]) -> None:
    """An unknown name in a later filter is not told when an earlier one leaves nothing."""
    if wanted and conn.execute(sa.select(_ID).where(*wanted).limit(1)).first() is None:
        raise _Nothing
