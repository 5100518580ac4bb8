"""Read and lock the rows of resource providers.

If an operator never ran the online data migrations, `root_provider_id` is NULL in rows of old
releases. The API does not return these providers.

Every function that locks rows executes a single statement that selects the rows by UUID, in the
order of the UUIDs. InnoDB locks rows in the order of the index that it reads. A statement that
selects rows by id would lock them in another order, and could deadlock with these functions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
import datetime
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.db import names
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ROOT = models.resource_providers.alias('root')
_PARENT = models.resource_providers.alias('parent')

ID = _PROVIDERS.c.id
# The columns are in the order of the fields of `Provider`.
_BY_UUID = (
    sa.select(
        _PROVIDERS.c.id,
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.name,
        models.generation(_PROVIDERS),
        _PROVIDERS.c.root_provider_id.label('root_id'),
        _PROVIDERS.c.parent_provider_id.label('parent_id'),
        _ROOT.c.uuid.label('root_uuid'),
        _PARENT.c.uuid.label('parent_uuid'),
        _PROVIDERS.c.updated_at,
        _PROVIDERS.c.created_at,
    )
    .select_from(
        _PROVIDERS.join(_ROOT, _ROOT.c.id == _PROVIDERS.c.root_provider_id).outerjoin(
            _PARENT, _PARENT.c.id == _PROVIDERS.c.parent_provider_id
        )
    )
    .where(_PROVIDERS.c.uuid == sa.bindparam('uuid'))
)
# The columns are in the order of the fields of `Locked`.
_LOCK = (
    sa.select(
        _PROVIDERS.c.id,
        _PROVIDERS.c.uuid,
        models.generation(_PROVIDERS),
        _PROVIDERS.c.root_provider_id.label('root_id'),
        _PROVIDERS.c.parent_provider_id.label('parent_id'),
    )
    .where(_PROVIDERS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
    .order_by(_PROVIDERS.c.uuid)
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider. The root of a root provider is the provider itself."""

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int
    parent_id: int | None
    root_uuid: str
    parent_uuid: str | None
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class WithRequested:
    """A provider with its traits, aggregates or inventories, and the requested ones.

    All are read at one time. A row starts with the id and the name: of a trait, of an aggregate
    (its UUID), or of the resource class of an inventory.

    :param rows: the rows of the provider; in a damaged database, the name can be None
    :param requested: the existing rows whose names the database considers equal to requested names
    """

    id: int
    uuid: str
    name: str
    generation: int
    rows: Sequence[Sequence[Any]]
    requested: Sequence[Sequence[Any]]

    @property
    def added(self) -> list[Sequence[Any]]:
        """The requested rows that are not rows of the provider."""
        return _without(self.requested, self.rows)

    @property
    def removed(self) -> list[Sequence[Any]]:
        """The rows of the provider that are not requested."""
        return _without(self.rows, self.requested)


def _without(rows: Sequence[Sequence[Any]], others: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    ids = {row[0] for row in others}
    return [row for row in rows if row[0] not in ids]


@dataclass(frozen=True, slots=True)
class Locked:
    """A resource provider whose row is locked, with the columns that writing requests need."""

    id: int
    uuid: str
    generation: int
    root_id: int
    parent_id: int | None


# Reading --------------------------------------------------------------------------


def read(conn: sa.Connection, uuid: str) -> Provider:
    """Return the provider with this UUID, without a lock on its row.

    :raises exception.ResourceProviderNotFound:
    """
    row: Any = conn.execute(_BY_UUID, {'uuid': uuid}).first()
    if row is None:
        raise exception.ResourceProviderNotFound(uuid)
    return Provider(*row)


def with_generation(key: sa.ColumnElement[Any], *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select of a provider's generation, `key` and `columns`, for `read_with_generation`.

    The caller adds outer joins from the provider id (`ID`) to the tables of the columns. A single
    statement needs only one round trip, and reads the generation and the joined rows at the same
    point in time.

    :param key: a column of the joined tables that is NULL only if no row is joined to the provider
    """
    return sa.select(models.generation(_PROVIDERS), key, *columns).where(
        _PROVIDERS.c.uuid == sa.bindparam('uuid'), _PROVIDERS.c.root_provider_id.is_not(None)
    )


def read_with_generation(
    conn: sa.Connection, statement: sa.Select[Any], uuid: str, **parameters: Any
) -> tuple[int, list[Any]]:
    """Return a provider's generation, and the rows joined to the provider, as (key, columns...).

    :param statement: a select from `with_generation`
    :param parameters: the bound parameters of the statement, except the UUID
    :raises exception.ResourceProviderNotFound:
    """
    rows = conn.execute(statement, {'uuid': uuid, **parameters}).all()
    if not rows:
        raise exception.ResourceProviderNotFound(uuid)
    return rows[0][0], [row[1:] for row in rows if row[1] is not None]


def and_requested(
    statement: sa.Select[Any], name: sa.Column[Any], *columns: sa.ColumnElement[Any]
) -> sa.CompoundSelect[Any]:
    """Return a statement for `read_with_requested`.

    :param statement: a select from `with_generation` whose first columns are the id and `name`. It
        is the first part of the UNION, because this part determines the types of the columns
    :param name: the column with the names of the requested rows; its table has the column `id`
    :param columns: further columns of the requested rows, one for each other column of `statement`
    """
    requested = sa.select(
        sa.null(), name.table.c.id, name, *columns, *(sa.null() for _ in range(3))
    ).where(name.in_(sa.bindparam('names', expanding=True)))
    return sa.union_all(statement.add_columns(ID, _PROVIDERS.c.uuid, _PROVIDERS.c.name), requested)


def read_with_requested(
    conn: sa.Connection, statement: sa.CompoundSelect[Any], uuid: str, names: Collection[str]
) -> WithRequested:
    """Return a provider with its rows, and the requested rows, without a lock.

    :param statement: a statement from `and_requested`
    :raises exception.ResourceProviderNotFound:
    """
    rows = conn.execute(statement, {'uuid': uuid, 'names': sorted(set(names))}).all()
    own = [row for row in rows if row[0] is not None]
    if not own:
        raise exception.ResourceProviderNotFound(uuid)
    id_, stored_uuid, name = own[0][-3:]
    return WithRequested(
        id_,
        stored_uuid,
        name,
        generation=own[0][0],
        rows=[row[1:-3] for row in own if row[1] is not None],
        requested=[row[1:-3] for row in rows if row[0] is None],
    )


# Locking --------------------------------------------------------------------------


def lock(
    conn: sa.Connection, uuids: Collection[str], stored: Collection[str] = ()
) -> dict[str, Locked]:
    """Lock the requested providers that exist, and return them keyed by requested UUID.

    A provider without a root is locked, because other providers may have it as their root, but it
    is not returned.

    :param uuids: the requested UUIDs; the keys of the result have the same spelling
    :param stored: the UUIDs of further providers to lock and return, as the database stores them
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same provider
    """
    if not uuids and not stored:
        return {}
    rows = lock_rows(conn, {*uuids, *stored})
    locked = {row.uuid: Locked(*row) for row in rows if row.root_id is not None}
    requested = set(uuids)
    if locked.keys() == requested:
        return locked
    ids = names.ids(
        conn,
        _PROVIDERS.c.uuid,
        requested.union(stored),
        {uuid: provider.id for uuid, provider in locked.items()},
    )
    names.require_distinct({uuid: id_ for uuid, id_ in ids.items() if uuid in requested})
    by_id = {provider.id: provider for provider in locked.values()}
    return {uuid: by_id[id_] for uuid, id_ in ids.items()}


def lock_rows(conn: sa.Connection, uuids: Collection[str]) -> Sequence[Any]:
    """Lock the providers with these UUIDs, and return their rows, also those without a root.

    :returns: rows with the columns `id`, `uuid`, `generation`, `root_id` and `parent_id`
    """
    return conn.execute(_LOCK, {'uuids': sorted(uuids)}).all()


def lock_one(conn: sa.Connection, uuid: str) -> Locked:
    """Lock one provider and return it.

    :raises exception.ResourceProviderNotFound:
    """
    locked = lock(conn, [uuid]).get(uuid)
    if locked is None:
        raise exception.ResourceProviderNotFound(uuid)
    return locked


def lock_with_root(conn: sa.Connection, *providers: Provider) -> list[Locked]:
    """Lock providers and the roots of their trees, and return the providers in the same order.

    Every change to the structure of a tree locks its root.

    :param providers: the providers, as this transaction read them without a lock
    :raises exception.ConcurrentChange: a concurrent transaction deleted one of the providers or
        moved it to another tree
    """
    uuids = {uuid for provider in providers for uuid in (provider.root_uuid, provider.uuid)}
    by_id = {locked.id: locked for locked in lock(conn, uuids).values()}
    for provider in providers:
        if provider.id not in by_id or by_id[provider.id].root_id != provider.root_id:
            raise exception.ConcurrentChange(f'Resource provider {provider.uuid}')
    return [by_id[provider.id] for provider in providers]


def lock_parent(conn: sa.Connection, parent_uuid: str, *moving: Provider) -> Provider:
    """Lock a parent provider, the provider that moves below this parent, and the roots of both.

    :param moving: the provider that moves below the parent; omitted if a provider is created
    :returns: the parent
    :raises exception.UnknownParent:
    :raises exception.ConcurrentChange: for the same reasons as in `lock_with_root`
    """
    try:
        parent = read(conn, parent_uuid)
    except exception.ResourceProviderNotFound:
        raise exception.UnknownParent(parent_uuid) from None
    lock_with_root(conn, parent, *moving)
    return parent
