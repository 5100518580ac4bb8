"""Aggregates: groups of resource providers. A UUID is the only attribute of an aggregate.

Placement creates an aggregate when it first adds a provider to it, and never deletes it.
"""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from placement import exception, trail
from placement.db import engine, names
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows
from placement.objects.provider_rows import WithRequested

_AGGREGATES = models.placement_aggregates
_LINKS = models.resource_provider_aggregates
_OF_PROVIDER = (
    provider_rows.with_generation(_LINKS.c.aggregate_id, _AGGREGATES.c.uuid)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_AGGREGATES, _AGGREGATES.c.id == _LINKS.c.aggregate_id)
)
_LIST = _OF_PROVIDER.order_by(_LINKS.c.aggregate_id)
_OF_PROVIDER_AND_REQUESTED = provider_rows.and_requested(_OF_PROVIDER, _AGGREGATES.c.uuid)
# New aggregates have no known ids, so the INSERT looks up the ids.
_LINK = sa.insert(_LINKS).from_select(
    ['resource_provider_id', 'aggregate_id'],
    sa.select(sa.bindparam('provider_id', type_=sa.Integer), _AGGREGATES.c.id).where(
        _AGGREGATES.c.uuid.in_(sa.bindparam('uuids', expanding=True)),
        _AGGREGATES.c.id.not_in(sa.bindparam('linked', expanding=True)),
    ),
)
_UNLINK = sa.delete(_LINKS).where(
    _LINKS.c.resource_provider_id == sa.bindparam('provider_id'),
    _LINKS.c.aggregate_id.in_(sa.bindparam('removed', expanding=True)),
)


def list_by_provider(uuid: str) -> tuple[int, list[str]]:
    """Return a provider's generation and the UUIDs of its aggregates.

    :raises exception.ResourceProviderNotFound:
    """
    current, rows = engine.read(lambda conn: provider_rows.read_with_generation(conn, _LIST, uuid))
    return current, [row[1] for row in rows if row[1] is not None]


def replace(uuid: str, aggregates: Collection[str], given_generation: int | None) -> int:
    """Replace the aggregates of a provider.

    :param aggregates: the UUIDs of the new aggregates; Placement creates those that do not exist
    :param given_generation: the provider generation in the request (from microversion 1.19 on); if
        None, the generation is neither checked nor incremented
    :returns: the provider generation after the change
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    """
    requested = sorted(set(aggregates))

    def work(conn: sa.Connection) -> tuple[WithRequested, Sequence[str]]:
        if given_generation is None:
            provider_id = provider_rows.lock_one(conn, uuid).id
            generation.touch(conn, models.resource_providers, [provider_id])
        elif not generation.lock_and_increment_provider(conn, uuid):
            raise exception.ResourceProviderNotFound(uuid)
        # Requests before microversion 1.19 change aggregates without an increment. Therefore the
        # provider is locked before the read.
        provider = provider_rows.read_with_requested(
            conn, _OF_PROVIDER_AND_REQUESTED, uuid, requested
        )
        if given_generation is not None:
            generation.check_provider(provider.uuid, given_generation, provider.generation - 1)
        return provider, _set_links(conn, provider, requested)

    provider, created = engine.write(work)
    added, removed = (
        [row[1] for row in rows if row[1]] for rows in (provider.added, provider.removed)
    )
    trail.log(trail.links, 'aggregates', provider.uuid, None, [*added, *created], removed)
    return provider.generation


def _set_links(
    conn: sa.Connection, provider: WithRequested, requested: Sequence[str]
) -> Sequence[str]:
    """Replace the links of a provider with links to the requested aggregates.

    :returns: the UUIDs of the aggregates that were created
    """
    removed = [row[0] for row in provider.removed]
    if removed:
        conn.execute(_UNLINK, {'provider_id': provider.id, 'removed': removed})
    missing: list[str] = []
    # If the numbers are equal, every requested aggregate exists, whatever the stored spelling is.
    if len(provider.requested) != len(requested):
        stored = {row[1] for row in provider.requested}
        # The database may compare two of these UUIDs as equal, or one as equal to a stored UUID.
        missing = [uuid for uuid in requested if uuid not in stored]
        names.insert_missing(conn, _AGGREGATES, [{'uuid': uuid} for uuid in missing])
    if missing or provider.added:
        linked = [row[0] for row in provider.rows]
        conn.execute(_LINK, {'provider_id': provider.id, 'uuids': requested, 'linked': linked})
    return missing
