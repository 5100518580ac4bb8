"""Claims: the one way to write allocations.

PUT and POST /allocations and POST /reshaper are the same thing with one claim or more: lock the
consumers, then the providers, read what decides, judge, and apply, in one transaction. Nothing of
a claim that fails stays behind, and nobody can be granted what is not there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.db.sqlalchemy import models
from placement.objects import (
    capacity,
    consumer,
    generation,
    inventory,
    owner,
    resource_class,
    resource_provider,
)
from placement.objects.capacity import Demand, Holding, Spot
from placement.objects.consumer import Consumer
from placement.objects.resource_provider import Locked

_HELD = models.allocations
_PROVIDERS = models.resource_providers
_CLASSES = models.resource_classes

_OF_CONSUMERS = (
    sa.select(
        _HELD.c.consumer_id,
        _PROVIDERS.c.id.label('provider_id'),
        _PROVIDERS.c.uuid.label('provider_uuid'),
        _CLASSES.c.name.label('resource_class'),
        _HELD.c.used,
    )
    .join(_PROVIDERS, _PROVIDERS.c.id == _HELD.c.resource_provider_id)
    .join(_CLASSES, _CLASSES.c.id == _HELD.c.resource_class_id)
    .where(_HELD.c.consumer_id.in_(sa.bindparam('uuids', expanding=True)))
)
_DELETE = sa.delete(_HELD).where(_HELD.c.consumer_id.in_(sa.bindparam('uuids', expanding=True)))


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
    :param held: rows of what the consumers of the request hold until now
    :param providers: all that the request touches, by the uuid that it uses
    :param owners: the ids of projects, users and consumer types
    """

    consumers: Mapping[str, Consumer]
    held: Sequence[Any]
    providers: Mapping[str, Locked]
    owners: owner.Owners


def release(conn: sa.Connection, consumer_uuids: Collection[str]) -> int:
    """Delete all allocations of consumers, and tell how many there were."""
    return int(conn.execute(_DELETE, {'uuids': sorted(consumer_uuids)}).rowcount)


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
    consumers = consumer.lock(conn, [claim.consumer_uuid for claim in claims])
    check_generations(claims, consumers)
    spellings = {claim.consumer_uuid for claim in claims}
    spellings |= {known.uuid for known in consumers.values()}
    held = conn.execute(_OF_CONSUMERS, {'uuids': sorted(spellings)}).all() if claims else []
    granted = [claim for claim in claims if claim.allocations]
    owners = owner.ensure(
        conn,
        {claim.project_id for claim in granted},
        {claim.user_id for claim in granted},
        {claim.consumer_type for claim in granted if claim.consumer_type is not None},
    )
    consumer.create(
        conn, [_row(claim, owners) for claim in granted if claim.consumer_uuid not in consumers]
    )
    touched = {uuid for claim in claims for uuid in claim.allocations}
    touched |= {row.provider_uuid for row in _cleared(claims, consumers, held)}
    providers = resource_provider.lock(conn, touched.union(provider_uuids))
    return Ground(consumers, held, providers, owners)


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


def released(ground: Ground) -> dict[Spot, int]:
    """What the consumers of the request give back before they take anew."""
    given: dict[Spot, int] = {}
    for row in ground.held:
        spot = row.provider_id, row.resource_class
        given[spot] = given.get(spot, 0) + row.used
    return given


def judge(claims: Sequence[Claim], ground: Ground, holdings: Mapping[Spot, Holding]) -> None:
    """Decide whether all the claims can be granted.

    :raises exception.InvalidAllocation: an amount cannot be granted
    """
    capacity.judge(demands(claims, ground), holdings, released(ground))


def settle(
    conn: sa.Connection,
    claims: Sequence[Claim],
    ground: Ground,
    holdings: Mapping[Spot, Holding],
    also_raised: Mapping[int, int],
) -> None:
    """Apply claims that `judge` granted.

    :param holdings: the inventories that the claims are about
    :param also_raised: by provider id, how much its generation rises for other reasons
    """
    _exchange(conn, claims, ground, holdings)
    _raise_providers(conn, claims, ground, also_raised)
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
    claims: Iterable[Claim], consumers: Mapping[str, Consumer], held: Iterable[Any]
) -> list[Any]:
    """The rows of `held` whose consumers shall hold nothing from now on."""
    emptied = [claim.consumer_uuid for claim in claims if not claim.allocations]
    names = {*emptied, *(consumers[uuid].uuid for uuid in emptied if uuid in consumers)}
    return [row for row in held if row.consumer_id in names]


def holdings(conn: sa.Connection, claims: Sequence[Claim], ground: Ground) -> dict[Spot, Holding]:
    """The inventories that the claims are about.

    :raises exception.UnknownResourceClasses:
    """
    wanted = demands(claims, ground)
    if not wanted:
        return {}
    names = {demand.resource_class for demand in wanted}
    found = inventory.holdings(conn, {demand.provider_id for demand in wanted}, names)
    resource_class.ids(conn, names - {name for _, name in found})
    return found


def _exchange(
    conn: sa.Connection,
    claims: Sequence[Claim],
    ground: Ground,
    holdings: Mapping[Spot, Holding],
) -> None:
    if ground.held:
        release(conn, {row.consumer_id for row in ground.held})
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
        conn.execute(sa.insert(_HELD), rows)


def _raise_providers(
    conn: sa.Connection,
    claims: Sequence[Claim],
    ground: Ground,
    also_raised: Mapping[int, int],
) -> None:
    """Raise each provider that is claimed from, or cleared. A mere loss raises nothing."""
    steps = dict(also_raised)
    touched = {ground.providers[uuid].id for claim in claims for uuid in claim.allocations}
    touched |= {row.provider_id for row in _cleared(claims, ground.consumers, ground.held)}
    for provider_id in touched:
        steps[provider_id] = steps.get(provider_id, 0) + 1
    seen = {locked.id: locked.generation for locked in ground.providers.values()}
    # There are three different steps at most, in whatever number of providers.
    for step in sorted(set(steps.values())):
        generation.raise_providers(
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
    generation.raise_consumers(
        conn,
        {known.id: known.generation for known in kept.values()},
        consumer.changed_owners(kept.values(), current),
    )
    consumer.delete(conn, emptied)
