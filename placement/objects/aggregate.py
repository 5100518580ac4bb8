"""Aggregates: groups of resource providers. A UUID is the only attribute of an aggregate.

Placement creates an aggregate when it first adds a provider to it, and never deletes it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from placement import exception, trail
from placement.db import engine, names
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows

_AGGREGATES = models.placement_aggregates
_LINKS = models.resource_provider_aggregates
_PROVIDERS = models.resource_providers
_OF_PROVIDER = (
    provider_rows.with_generation(_AGGREGATES.c.uuid)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_AGGREGATES, _AGGREGATES.c.id == _LINKS.c.aggregate_id)
    .order_by(_AGGREGATES.c.id)
)
# The first part selects the requested aggregates that exist; the last three columns are NULL. The
# second part selects the current aggregates of the provider. If the provider exists, this part has
# at least one row; the id of the aggregate is NULL if the provider has none.
_REQUESTED_AND_LINKED = sa.union_all(
    sa.select(
        _AGGREGATES.c.id,
        _AGGREGATES.c.uuid,
        sa.null().label('provider_id'),
        sa.null().label('provider_uuid'),
        sa.null().label('generation'),
    ).where(_AGGREGATES.c.uuid.in_(sa.bindparam('uuids', expanding=True))),
    sa.select(
        _LINKS.c.aggregate_id,
        _AGGREGATES.c.uuid,
        _PROVIDERS.c.id,
        _PROVIDERS.c.uuid,
        models.generation(_PROVIDERS),
    )
    .select_from(_PROVIDERS)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == _PROVIDERS.c.id)
    .outerjoin(_AGGREGATES, _AGGREGATES.c.id == _LINKS.c.aggregate_id)
    .where(_PROVIDERS.c.uuid == sa.bindparam('uuid'), _PROVIDERS.c.root_provider_id.is_not(None)),
)
_LINK = sa.insert(_LINKS)
_LINK_BY_UUID = _LINK.from_select(
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


@dataclass(frozen=True, slots=True)
class _Provider:
    """A provider with the ids and UUIDs of its aggregates, all read at one time."""

    id: int
    uuid: str
    generation: int
    aggregates: Mapping[int, str | None]


@dataclass(frozen=True, slots=True)
class _Change:
    """The UUIDs of the aggregates to which a request added a provider, or from which it removed it.

    :ivar provider: the provider before the change
    """

    provider: _Provider
    added: Sequence[str]
    removed: Sequence[str]


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
    requested = sorted(set(aggregates))

    def work(conn: sa.Connection) -> _Change:
        if given_generation is None:
            provider_rows.lock_one(conn, uuid)
            provider, existing = _read_requested_and_linked(conn, uuid, requested)
            generation.touch(conn, _PROVIDERS, [provider.id])
        else:
            # Requests before microversion 1.19 change aggregates without an increment. Therefore
            # the increment, which locks the provider, precedes the read.
            incremented = generation.increment_given(conn, uuid, given_generation)
            provider, existing = _read_requested_and_linked(conn, uuid, requested)
            if not incremented:
                generation.check_provider(provider.uuid, given_generation, provider.generation)
                # A concurrent transaction created or changed the provider after the UPDATE.
                raise exception.ConcurrentChange(f'Resource provider {uuid}')
        return _set_links(conn, provider, requested, existing)

    change = engine.write(work)
    provider = change.provider
    trail.log(trail.links, 'aggregates', provider.uuid, None, change.added, change.removed)
    return provider.generation


def _read_requested_and_linked(
    conn: sa.Connection, uuid: str, requested: Sequence[str]
) -> tuple[_Provider, dict[str, int]]:
    """Return a provider, and the ids of the requested aggregates that exist, keyed by stored UUID.

    The database considers each of the stored UUIDs equal to a requested UUID. The spelling may
    differ.

    :raises exception.ResourceProviderNotFound:
    """
    rows = conn.execute(_REQUESTED_AND_LINKED, {'uuid': uuid, 'uuids': requested}).all()
    linked = [row for row in rows if row.provider_id is not None]
    if not linked:
        raise exception.ResourceProviderNotFound(uuid)
    _, _, id_, stored_uuid, current = linked[0]
    aggregates = {row.id: row.uuid for row in linked if row.id is not None}
    existing = {row.uuid: row.id for row in rows if row.provider_id is None}
    return _Provider(id_, stored_uuid, current, aggregates), existing


def _set_links(
    conn: sa.Connection, provider: _Provider, requested: Sequence[str], existing: dict[str, int]
) -> _Change:
    """Replace the links of a provider with links to the requested aggregates.

    :param existing: the ids of the requested aggregates that exist, keyed by stored UUID
    """
    ids = frozenset(existing.values())
    removed = sorted(provider.aggregates.keys() - ids)
    if removed:
        conn.execute(_UNLINK, {'provider_id': provider.id, 'removed': removed})
    # If the numbers are equal, every requested aggregate exists, whatever the stored spelling is.
    missing = [u for u in requested if u not in existing] if len(ids) != len(requested) else []
    added = {id_: uuid for uuid, id_ in existing.items() if id_ not in provider.aggregates}
    if missing:
        _create_and_link(conn, provider, requested, missing)
    elif added:
        conn.execute(
            _LINK,
            [{'resource_provider_id': provider.id, 'aggregate_id': id_} for id_ in sorted(added)],
        )
    names_of_removed = (provider.aggregates[id_] for id_ in removed)
    return _Change(provider, [*added.values(), *missing], [n for n in names_of_removed if n])


def _create_and_link(
    conn: sa.Connection, provider: _Provider, requested: Sequence[str], missing: Sequence[str]
) -> None:
    """Create aggregates, and link a provider to all requested aggregates.

    :param missing: the requested UUIDs that are not stored in this spelling. The database may still
        compare two of them as equal, or compare one as equal to the UUID of an existing aggregate
    """
    names.insert_missing(conn, _AGGREGATES, [{'uuid': uuid} for uuid in missing])
    linked = sorted(provider.aggregates)
    conn.execute(_LINK_BY_UUID, {'provider_id': provider.id, 'uuids': requested, 'linked': linked})
