"""Aggregates: groups of providers that are nothing but a uuid, made on first use and kept."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from placement import db_api
from placement.db import names
from placement.db.sqlalchemy import models
from placement.objects import generation, resource_provider

_AGGREGATES = models.placement_aggregates
_LINKS = models.resource_provider_aggregates
_OF_PROVIDER = (
    resource_provider.with_generation(_AGGREGATES.c.uuid)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == resource_provider.ID)
    .outerjoin(_AGGREGATES, _AGGREGATES.c.id == _LINKS.c.aggregate_id)
    .order_by(_AGGREGATES.c.id)
)
# What is wanted as far as it exists, and what is linked already, which has no uuid here.
_FACTS = sa.union_all(
    sa.select(_AGGREGATES.c.id, _AGGREGATES.c.uuid).where(
        _AGGREGATES.c.uuid.in_(sa.bindparam('uuids', expanding=True))
    ),
    sa.select(_LINKS.c.aggregate_id, sa.null()).where(
        _LINKS.c.resource_provider_id == sa.bindparam('provider_id')
    ),
)


def list_by_provider(uuid: str) -> tuple[int, list[str]]:
    """A provider's generation and the aggregates that it is a member of.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        seen, rows = resource_provider.read_with_generation(conn, _OF_PROVIDER, uuid)
    return seen, [found for (found,) in rows]


def replace(uuid: str, aggregates: Collection[str], given_generation: int | None) -> int:
    """Make a provider a member of just these aggregates.

    :param given_generation: from microversion 1.19 on the generation that the client saw, which
        is then raised; None leaves it alone
    :returns: the provider's generation
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    """

    def work(conn: sa.Connection) -> int:
        provider = resource_provider.lock_one(conn, uuid)
        if given_generation is not None:
            resource_provider.require_generation(provider, given_generation)
        _set_links(conn, provider.id, sorted(set(aggregates)))
        if given_generation is None:
            generation.touch(conn, models.resource_providers, [provider.id])
            return provider.generation
        generation.increment_providers(conn, {provider.id: provider.generation})
        return provider.generation + 1

    return db_api.write(work)


def _set_links(conn: sa.Connection, provider_id: int, wanted: Sequence[str]) -> None:
    """Link a provider to just these aggregates, which are created where they are missing."""
    rows = conn.execute(_FACTS, {'uuids': wanted, 'provider_id': provider_id}).all()
    # The database found these by all requested UUIDs together: which is which does not matter.
    found = {row.uuid: row.id for row in rows if row.uuid is not None}
    known = set(found.values())
    linked = {row.id for row in rows if row.uuid is None}
    missing = [] if len(found) == len(wanted) else [uuid for uuid in wanted if uuid not in found]
    _unlink(conn, provider_id, sorted(linked - known))
    _link(conn, provider_id, sorted(known - linked))
    if missing:
        # Some may equal each other, or one of `found` that is spelled differently.
        names.insert_missing(conn, _AGGREGATES, [{'uuid': uuid} for uuid in missing])
        ids = sa.select(sa.literal(provider_id), _AGGREGATES.c.id)
        conn.execute(
            sa.insert(_LINKS).from_select(
                ['resource_provider_id', 'aggregate_id'],
                ids.where(_AGGREGATES.c.uuid.in_(missing), _AGGREGATES.c.id.not_in(sorted(known))),
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
