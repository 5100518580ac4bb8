"""Aggregates: groups of providers that are nothing but a uuid, made on first use and kept."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.objects import generation, keys, resource_provider
from placement.objects.resource_provider import Provider

if TYPE_CHECKING:
    from placement.context import RequestContext

_AGGREGATES = models.placement_aggregates
_LINKS = models.resource_provider_aggregates
_OF_PROVIDER = (
    sa.select(_AGGREGATES.c.uuid)
    .join(_LINKS, _LINKS.c.aggregate_id == _AGGREGATES.c.id)
    .where(_LINKS.c.resource_provider_id == sa.bindparam('provider_id'))
    .order_by(_AGGREGATES.c.id)
)
_IDS = sa.select(_AGGREGATES.c.id, _AGGREGATES.c.uuid).where(
    _AGGREGATES.c.uuid.in_(sa.bindparam('uuids', expanding=True))
)


def list_by_provider(ctx: 'RequestContext', uuid: str) -> tuple[Provider, list[str]]:
    """A provider and the aggregates that it is a member of.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        provider = resource_provider.read(conn, uuid)
        uuids = conn.execute(_OF_PROVIDER, {'provider_id': provider.id}).scalars().all()
    return provider, list(uuids)


def replace(
    ctx: 'RequestContext', uuid: str, aggregates: Collection[str], given_generation: int | None
) -> int:
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
        _set_links(conn, provider.id, _ensure(conn, aggregates))
        if given_generation is None:
            generation.touch(conn, models.resource_providers, [provider.id])
            return provider.generation
        generation.raise_providers(conn, {provider.id: provider.generation})
        return provider.generation + 1

    return db_api.write(work)


def _ensure(conn: sa.Connection, uuids: Collection[str]) -> set[int]:
    """The ids of aggregates, which are created where they are missing."""
    if not uuids:
        return set()
    wanted = sorted(set(uuids))
    found = keys.match(conn, wanted, conn.execute(_IDS, {'uuids': wanted}).all(), 'uuid')
    missing = [uuid for uuid in wanted if uuid not in found]
    ids = {row.id for row in found.values()}
    if not missing:
        return ids
    keys.require_one_spelling(conn, missing)
    conn.execute(sa.insert(_AGGREGATES), [{'uuid': uuid} for uuid in missing])
    return ids | {row.id for row in conn.execute(_IDS, {'uuids': missing})}


def _set_links(conn: sa.Connection, provider_id: int, aggregate_ids: set[int]) -> None:
    here = _LINKS.c.resource_provider_id == provider_id
    current = set(conn.execute(sa.select(_LINKS.c.aggregate_id).where(here)).scalars())
    gone = sorted(current - aggregate_ids)
    new = sorted(aggregate_ids - current)
    if gone:
        conn.execute(sa.delete(_LINKS).where(here, _LINKS.c.aggregate_id.in_(gone)))
    if new:
        conn.execute(
            sa.insert(_LINKS),
            [{'resource_provider_id': provider_id, 'aggregate_id': new_id} for new_id in new],
        )
