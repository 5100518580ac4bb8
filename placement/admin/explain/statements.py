"""The statement of this package: the names of providers."""

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from placement.db import provider_conditions
from placement.db.sqlalchemy import models

# If more names are needed, it is faster to read the names of all providers.
_MAX_IDS = 5_000

_PROVIDERS = models.resource_providers


def names(conn: sa.Connection, provider_ids: Collection[int]) -> dict[int, str]:
    """Return provider id -> name, for at least these providers."""
    statement: sa.Select[Any] = sa.select(_PROVIDERS.c.id, _PROVIDERS.c.name)
    if len(provider_ids) <= _MAX_IDS:
        statement = statement.where(_PROVIDERS.c.id.in_(provider_conditions.id_list(provider_ids)))
    return {id_: name or '' for id_, name in conn.execute(statement)}
