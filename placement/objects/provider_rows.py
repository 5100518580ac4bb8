"""Read a resource provider, alone or together with related rows such as inventories.

If an operator never ran the online data migrations, `root_provider_id` is NULL in rows of old
releases. The API does not return these providers.
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
