"""The rows of resource providers, and how other modules read them.

A row whose `root_provider_id` is NULL comes from a release whose online data migrations were
never run. The API does not show such a provider.
"""

from dataclasses import dataclass
import datetime
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ROOT = models.resource_providers.alias('root')
_PARENT = models.resource_providers.alias('parent')

ID = _PROVIDERS.c.id
# The columns in the order of the fields of `Provider`.
_BY_UUID = (
    sa.select(
        _PROVIDERS.c.id,
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.name,
        _PROVIDERS.c.generation,
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


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider with the UUIDs of its root and its parent. A root is its own root."""

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


def read(conn: sa.Connection, uuid: str) -> Provider:
    """Return the provider with a UUID, without locking its row.

    :raises exception.ResourceProviderNotFound:
    """
    row: Any = conn.execute(_BY_UUID, {'uuid': uuid}).first()
    if row is None:
        raise exception.ResourceProviderNotFound(uuid)
    return Provider(*row)


def with_generation(key: sa.ColumnElement[Any], *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a statement for `read_with_generation`: a provider's generation, key and columns.

    The caller adds an outer join from `ID` to the tables of the columns. One statement is one
    round trip, and it reads the generation and the other rows at the same point in time.

    :param key: a column that is NULL in the row of a provider to which nothing is joined
    """
    return sa.select(_PROVIDERS.c.generation, key, *columns).where(
        _PROVIDERS.c.uuid == sa.bindparam('uuid'), _PROVIDERS.c.root_provider_id.is_not(None)
    )


def read_with_generation(
    conn: sa.Connection, statement: sa.Select[Any], uuid: str, **parameters: Any
) -> tuple[int, list[Any]]:
    """Return a provider's generation, and the joined rows (key, columns...) without a NULL key.

    :param statement: a statement from `with_generation`
    :param parameters: further parameters of the statement
    :raises exception.ResourceProviderNotFound:
    """
    rows = conn.execute(statement, {'uuid': uuid, **parameters}).all()
    if not rows:
        raise exception.ResourceProviderNotFound(uuid)
    return rows[0][0], [row[1:] for row in rows if row[1] is not None]
