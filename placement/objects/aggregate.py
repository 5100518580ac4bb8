"""Aggregates: groups of resource providers. A UUID is the only attribute of an aggregate.

Placement creates an aggregate when it first adds a provider to it, and never deletes it.
"""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from placement.db import engine, names
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_locks, provider_rows

_AGGREGATES = models.placement_aggregates
_LINKS = models.resource_provider_aggregates
_OF_PROVIDER = (
    provider_rows.with_generation(_AGGREGATES.c.uuid)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_AGGREGATES, _AGGREGATES.c.id == _LINKS.c.aggregate_id)
    .order_by(_AGGREGATES.c.id)
)
# The first part selects the requested aggregates that exist. The second part selects the current
# aggregates of the provider, with NULL in place of the UUID.
_REQUESTED_AND_LINKED = sa.union_all(
    sa.select(_AGGREGATES.c.id, _AGGREGATES.c.uuid).where(
        _AGGREGATES.c.uuid.in_(sa.bindparam('uuids', expanding=True))
    ),
    sa.select(_LINKS.c.aggregate_id, sa.null()).where(
        _LINKS.c.resource_provider_id == sa.bindparam('provider_id')
    ),
)


def list_by_provider(uuid: str) -> tuple[int, list[str]]:
    """Return a provider's generation and the UUIDs of its aggregates.

    :raises exception.ResourceProviderNotFound:
    """
    current, rows = engine.read(
        lambda conn: provider_rows.read_with_generation(conn, _OF_PROVIDER, uuid)
    )
    return current, [aggregate_uuid for (aggregate_uuid,) in rows]


def replace(uuid: str, aggregates: Collection[str], given_generation: int | None) -> int:
    """Replace the aggregates of a provider.

    :param aggregates: the UUIDs of the new aggregates; Placement creates those that do not exist
    :param given_generation: the provider generation in the request (from microversion 1.19 on); if
        None, the generation is neither checked nor incremented
    :returns: the provider generation after the change
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    """

    def work(conn: sa.Connection) -> int:
        provider = provider_locks.lock_one(conn, uuid)
        if given_generation is not None:
            generation.check_provider(provider.uuid, given_generation, provider.generation)
        _set_links(conn, provider.id, sorted(set(aggregates)))
        if given_generation is None:
            generation.touch(conn, models.resource_providers, [provider.id])
            return provider.generation
        generation.increment_providers(conn, {provider.id: provider.generation})
        return provider.generation + 1

    return engine.write(work)


def _set_links(conn: sa.Connection, provider_id: int, requested: Sequence[str]) -> None:
    """Replace the links of a provider with links to the requested aggregates."""
    parameters = {'uuids': requested, 'provider_id': provider_id}
    rows = conn.execute(_REQUESTED_AND_LINKED, parameters).all()
    # The database compares each of these as equal to a requested UUID. The spelling may differ.
    found = {row.uuid: row.id for row in rows if row.uuid is not None}
    existing = set(found.values())
    linked = {row.id for row in rows if row.uuid is None}
    _unlink(conn, provider_id, sorted(linked - existing))
    _link(conn, provider_id, sorted(existing - linked))
    # If the numbers are equal, every requested aggregate exists, whatever the stored spelling is.
    missing = [] if len(found) == len(requested) else [u for u in requested if u not in found]
    if missing:
        _create_and_link(conn, provider_id, missing, existing)


def _create_and_link(
    conn: sa.Connection, provider_id: int, uuids: Sequence[str], existing: Collection[int]
) -> None:
    """Create aggregates, and link a provider to them.

    :param uuids: UUIDs that are not stored in this spelling. The database may still compare two of
        them as equal, or compare one as equal to the UUID of an existing aggregate
    :param existing: the ids of aggregates that are already linked to the provider
    """
    names.insert_missing(conn, _AGGREGATES, [{'uuid': uuid} for uuid in uuids])
    ids = sa.select(sa.literal(provider_id), _AGGREGATES.c.id)
    conn.execute(
        sa.insert(_LINKS).from_select(
            ['resource_provider_id', 'aggregate_id'],
            ids.where(_AGGREGATES.c.uuid.in_(uuids), _AGGREGATES.c.id.not_in(sorted(existing))),
        )
    )


def _unlink(conn: sa.Connection, provider_id: int, aggregate_ids: Sequence[int]) -> None:
    if aggregate_ids:
        conn.execute(
            sa.delete(_LINKS).where(
                _LINKS.c.resource_provider_id == provider_id,
                _LINKS.c.aggregate_id.in_(aggregate_ids),
            )
        )


def _link(conn: sa.Connection, provider_id: int, aggregate_ids: Sequence[int]) -> None:
    if aggregate_ids:
        conn.execute(
            sa.insert(_LINKS),
            [{'resource_provider_id': provider_id, 'aggregate_id': id_} for id_ in aggregate_ids],
        )
