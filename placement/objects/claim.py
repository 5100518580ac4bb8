"""Claims: the one way to write allocations.

PUT and POST /allocations and POST /reshaper are the same thing with one claim or more: lock the
consumers, then the providers, read what decides, judge, and apply, in one transaction. Nothing of
a claim that fails stays behind, and nobody can be granted what is not there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from placement import capacity, exception
from placement.capacity import Demand, InventoryKey, InventoryUsage
from placement.db import names
from placement.db.sqlalchemy import models
from placement.objects import (
    consumer,
    generation,
    inventory,
    owner,
    resource_class,
    resource_provider,
)
from placement.objects.consumer import Consumer
from placement.objects.resource_provider import Locked

_ALLOCATIONS = models.allocations
_PROVIDERS = models.resource_providers
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers

# Outer joins: an allocation is released even if its provider or its class does not exist.
_OF_CONSUMERS = (
    sa.select(
        _ALLOCATIONS.c.id,
        _ALLOCATIONS.c.consumer_id,
        _PROVIDERS.c.id.label('provider_id'),
        _PROVIDERS.c.uuid.label('provider_uuid'),
        _CLASSES.c.name.label('resource_class'),
        _ALLOCATIONS.c.used,
    )
    .outerjoin(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
    .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .where(_ALLOCATIONS.c.consumer_id.in_(sa.bindparam('uuids', expanding=True)))
)
_DELETE_OF_CONSUMERS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.consumer_id.in_(sa.bindparam('uuids', expanding=True))
)
# Drivers limit the number of parameters, and consumers may have many allocations.
_DELETE = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.id.in_(sa.bindparam('ids', expanding=True, literal_execute=True))
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one consumer shall hold from now on; no allocations: nothing.

    :param consumer_type: None keeps the type of a consumer that exists (before microversion 1.38)
    :param generation: the consumer generation that the client saw, None for a new consumer;
        looked at only if `checks_generation` (microversion 1.28)
    :param allocations: amounts by resource class, by provider uuid
    """

    consumer_uuid: str
    project_id: str
    user_id: str
    consumer_type: str | None
    generation: int | None
    checks_generation: bool
    allocations: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known, and locked, before a claim is decided.

    :param consumers: those that existed before, by the uuid that the claim uses
    :param held: the allocations of the consumers of the request before it. Without a consumer row
        nothing locks them, so their number is compared when they are deleted
    :param cleared: those of `held` whose consumers have no allocations after the request
    :param providers: all that the request touches, by the uuid that it uses
    :param owners: the ids of projects, users and consumer types
    """

    consumers: Mapping[str, Consumer]
    held: Sequence[Any]
    cleared: Sequence[Any]
    providers: Mapping[str, Locked]
    owners: owner.Owners


def release(conn: sa.Connection, consumer_uuids: Collection[str]) -> int:
    """Delete all allocations of consumers, and return how many there were."""
    return int(conn.execute(_DELETE_OF_CONSUMERS, {'uuids': sorted(consumer_uuids)}).rowcount)


def check_generations(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> None:
    """Compare the consumer generations that clients gave with those that are.

    :raises exception.ConsumerGenerationConflict: the first that differs
    """
    for claim in claims:
        known = consumers.get(claim.consumer_uuid)
        current = known.generation if known else None
        if claim.checks_generation and claim.generation != current:
            raise exception.ConsumerGenerationConflict(
                claim.consumer_uuid, claim.generation, current
            )


def prepare(
    conn: sa.Connection, claims: Sequence[Claim], provider_uuids: Iterable[str] = ()
) -> Ground:
    """Lock consumers, create owners and new consumers, and lock the providers: in this order.

    :param provider_uuids: providers to lock beside those that the claims touch
    :raises exception.ConsumerGenerationConflict:
    """
    granted = [claim for claim in claims if claim.allocations]
    uuids = [claim.consumer_uuid for claim in claims]
    consumers = consumer.lock(conn, uuids, {claim.consumer_uuid for claim in granted})
    check_generations(claims, consumers)
    spellings = {*uuids, *(known.uuid for known in consumers.values())}
    held = conn.execute(_OF_CONSUMERS, {'uuids': sorted(spellings)}).all() if claims else []
    owners = owner.ensure(
        conn,
        {claim.project_id for claim in granted},
        {claim.user_id for claim in granted},
        {claim.consumer_type for claim in granted if claim.consumer_type is not None},
    )
    consumer.create(
        conn,
        [_row(claim, owners) for claim in granted if claim.consumer_uuid not in consumers],
        uuids,
    )
    cleared = _cleared(conn, claims, consumers, held)
    named = {uuid for claim in claims for uuid in claim.allocations}
    stored = {row.provider_uuid for row in cleared if row.provider_uuid is not None}
    providers = resource_provider.lock(conn, named.union(provider_uuids), stored)
    _require_still_unknown(conn, claims, consumers)
    return Ground(consumers, held, cleared, providers, owners)


def _require_still_unknown(
    conn: sa.Connection, claims: Iterable[Claim], consumers: Mapping[str, Consumer]
) -> None:
    """Check that no consumer was created that the request empties and that had no row to lock.

    Other unknown consumers are inserted, and the unique key detects the conflict. From here on
    the locks of the providers keep the usage that decides as it is.

    :raises exception.ConcurrentChange: a concurrent transaction created one of them
    """
    unknown = {claim.consumer_uuid for claim in claims if not claim.allocations} - consumers.keys()
    if not unknown:
        return
    query = sa.select(_CONSUMERS.c.id).where(_CONSUMERS.c.uuid.in_(sorted(unknown))).limit(1)
    if conn.execute(query).first() is not None:
        raise exception.ConcurrentChange('A consumer that the request empties')


def require_providers(claims: Iterable[Claim], ground: Ground) -> None:
    """Check that the providers of the claims exist.

    :raises exception.UnknownResourceProviders: naming all that do not
    """
    named = {uuid for claim in claims for uuid in claim.allocations}
    unknown = named - ground.providers.keys()
    if unknown:
        raise exception.UnknownResourceProviders(unknown)


def demands(claims: Iterable[Claim], ground: Ground) -> list[Demand]:
    """What the claims ask for, one by one."""
    return [
        Demand(ground.providers[uuid].id, uuid, name, amount)
        for claim in claims
        for uuid, amounts in claim.allocations.items()
        for name, amount in amounts.items()
    ]


def released(ground: Ground) -> dict[InventoryKey, int]:
    """What the consumers of the request give back before they take anew."""
    given: dict[InventoryKey, int] = {}
    for row in ground.held:
        if row.provider_id is None or row.resource_class is None:
            continue
        spot = row.provider_id, row.resource_class
        given[spot] = given.get(spot, 0) + row.used
    return given


def judge(
    claims: Sequence[Claim], ground: Ground, holdings: Mapping[InventoryKey, InventoryUsage]
) -> None:
    """Decide whether all the claims can be granted.

    :raises exception.InvalidAllocation: an amount cannot be granted
    """
    capacity.judge(demands(claims, ground), holdings, released(ground))


def settle(
    conn: sa.Connection,
    claims: Sequence[Claim],
    ground: Ground,
    holdings: Mapping[InventoryKey, InventoryUsage],
    also_raised: Mapping[int, int],
) -> None:
    """Apply claims that `judge` granted.

    :param holdings: the inventories that the claims are about
    :param also_raised: by provider id, how much its generation rises for other reasons
    """
    _exchange(conn, claims, ground, holdings)
    _increment_providers(conn, claims, ground, also_raised)
    _update_consumers(conn, claims, ground)


def _row(claim: Claim, owners: owner.Owners) -> dict[str, Any]:
    return {
        'uuid': claim.consumer_uuid,
        'project_id': owners.projects[claim.project_id],
        'user_id': owners.users[claim.user_id],
        'consumer_type_id': None
        if claim.consumer_type is None
        else owners.types[claim.consumer_type],
    }


def _cleared(
    conn: sa.Connection,
    claims: Sequence[Claim],
    consumers: Mapping[str, Consumer],
    held: Sequence[Any],
) -> Sequence[Any]:
    """The allocations of the consumers that have none after the request."""
    emptied = {claim.consumer_uuid for claim in claims if not claim.allocations}
    if not emptied or not held:
        return ()
    if len(emptied) == len(claims):
        return held
    stored = {known.uuid: uuid for uuid, known in consumers.items()}
    owners = stored | {claim.consumer_uuid: claim.consumer_uuid for claim in claims}
    texts = {row.consumer_id for row in held}
    if not texts <= owners.keys():
        equal = names.equal_texts(conn, _ALLOCATIONS.c.consumer_id, owners)
        owners = {text: owners[name] for text, name in equal.items()}
    return [row for row in held if owners.get(row.consumer_id) in emptied]


def holdings(
    conn: sa.Connection, claims: Sequence[Claim], ground: Ground
) -> dict[InventoryKey, InventoryUsage]:
    """The inventories that the claims are about.

    :raises exception.UnknownResourceClasses:
    """
    wanted = demands(claims, ground)
    if not wanted:
        return {}
    class_names = {demand.resource_class for demand in wanted}
    found = inventory.holdings(conn, {demand.provider_id for demand in wanted}, class_names)
    resource_class.ids(conn, class_names - {name for _, name in found})
    return found


def _exchange(
    conn: sa.Connection,
    claims: Sequence[Claim],
    ground: Ground,
    holdings: Mapping[InventoryKey, InventoryUsage],
) -> None:
    if ground.held:
        deleted = conn.execute(_DELETE, {'ids': [row.id for row in ground.held]}).rowcount
        if deleted != len(ground.held):
            raise exception.ConcurrentChange('The set of allocations of a consumer')
    rows = []
    for claim in claims:
        known = ground.consumers.get(claim.consumer_uuid)
        consumer_id = known.uuid if known else claim.consumer_uuid
        for demand in demands([claim], ground):
            holding = holdings[demand.provider_id, demand.resource_class]
            rows.append(
                {
                    'resource_provider_id': demand.provider_id,
                    'consumer_id': consumer_id,
                    'resource_class_id': holding.resource_class_id,
                    'used': demand.amount,
                }
            )
    if rows:
        conn.execute(sa.insert(_ALLOCATIONS), rows)


def _increment_providers(
    conn: sa.Connection,
    claims: Sequence[Claim],
    ground: Ground,
    also_raised: Mapping[int, int],
) -> None:
    """Raise each provider that is claimed from, or cleared. A mere loss raises nothing."""
    steps = dict(also_raised)
    touched = {ground.providers[uuid].id for claim in claims for uuid in claim.allocations}
    touched |= {row.provider_id for row in ground.cleared}
    for provider_id in touched:
        steps[provider_id] = steps.get(provider_id, 0) + 1
    seen = {locked.id: locked.generation for locked in ground.providers.values()}
    # There are three different steps at most, in whatever number of providers.
    for step in sorted(set(steps.values())):
        generation.increment_providers(
            conn,
            {pid: seen[pid] for pid, own in steps.items() if own == step and pid in seen},
            step,
        )


def _update_consumers(conn: sa.Connection, claims: Sequence[Claim], ground: Ground) -> None:
    kept: dict[int, Consumer] = {}
    emptied: list[int] = []
    for claim in claims:
        known = ground.consumers.get(claim.consumer_uuid)
        if known is None:
            continue
        if not claim.allocations:
            emptied.append(known.id)
            continue
        owned = _row(claim, ground.owners)
        kept[known.id] = replace(
            known,
            project_id=owned['project_id'],
            user_id=owned['user_id'],
            consumer_type_id=owned['consumer_type_id'] or known.consumer_type_id,
        )
    current = {known.id: known for known in ground.consumers.values()}
    generation.increment_consumers(
        conn,
        {known.id: known.generation for known in kept.values()},
        consumer.changed_owners(kept.values(), current),
    )
    consumer.delete(conn, emptied)
