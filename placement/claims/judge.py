"""Accept or reject the claims of a request, and plan the inventory changes of a reshape.

All functions are pure: they receive the stored data as arguments, for example as
`LockedClaims`, and do not access the database.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from placement import capacity, errors, exception
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.claims.claim import Claim, Consumer, Demand, LockedClaims, Replacement, Reshape
from placement.objects import generation
from placement.objects.inventory import Plan, plan_changes
from placement.objects.provider_rows import Locked

_UNIT_REASONS = {
    'min_unit': 'less than its min_unit',
    'max_unit': 'more than its max_unit',
    'step_size': 'not a multiple of its step_size',
}
# The reason of each exception class, as the metrics name it.
_REASON_OF: dict[type[exception.PlacementException], str] = {
    exception.ConcurrentChange: 'concurrent_change',
    exception.ConsumerGenerationConflict: 'consumer_generation',
    exception.InventoryInUse: 'inventory_in_use',
    exception.ResourceProviderGenerationConflict: 'provider_generation',
    exception.UnknownResourceClasses: 'unknown_resource_class',
    exception.UnknownResourceProviders: 'unknown_provider',
}


# Generations and providers --------------------------------------------------------


def has_stale_consumer(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> bool:
    """Return whether a claim has a stale consumer generation."""
    return any(
        claim.checks_generation and claim.generation != _generation(claim, consumers)
        for claim in claims
    )


def check_consumers(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> None:
    """Check that the consumer generations in the request equal the stored generations.

    :param consumers: the stored consumers, keyed by requested UUID
    :raises exception.ConsumerGenerationConflict: for the first claim with a stale generation
    """
    for claim in claims:
        if claim.checks_generation:
            current = _generation(claim, consumers)
            generation.check_consumer(claim.consumer_uuid, claim.generation, current)


def check_claimed_providers(claimed: Iterable[str], found: Collection[str]) -> None:
    """Check that all providers in the claims exist.

    :param claimed: the requested UUIDs of the providers
    :param found: the requested UUIDs of the providers that exist
    :raises exception.UnknownResourceProviders: lists all providers that do not exist
    """
    missing = set(claimed).difference(found)
    if missing:
        raise exception.UnknownResourceProviders(missing)


def _generation(claim: Claim, consumers: Mapping[str, Consumer]) -> int | None:
    stored = consumers.get(claim.consumer_uuid)
    return stored.generation if stored else None


# Amounts --------------------------------------------------------------------------


def check_amounts(
    demands: Iterable[Demand],
    inventories: Mapping[InventoryKey, InventoryUsage],
    released: Mapping[InventoryKey, int],
) -> None:
    """Check that the inventories allow all requested allocations at the same time.

    If the usage of an inventory already exceeds its capacity, the request may keep or reduce the
    usage.

    :param demands: the requested allocations of all consumers
    :param inventories: the inventories to allocate from, with their usage before the request
    :param released: the sums of the existing allocations of the same consumers
    :raises exception.InvalidAllocation: for the first allocation that its inventory does not allow
    """
    requested: dict[InventoryKey, int] = {}
    for demand in demands:
        key = demand.provider_id, demand.resource_class
        current = inventories.get(key)
        if current is None:
            raise _refusal(demand, None, 'no_inventory', 'does not exist.', demand.amount)
        _check_unit(demand, current.inventory)
        requested[key] = requested.get(key, 0) + demand.amount
        others = current.used - released.get(key, 0)
        limit = current.inventory.capacity
        if capacity.fits(requested[key], others, limit):
            continue
        used = others + requested[key]
        if used > current.used:
            raise _refusal(
                demand,
                current.inventory,
                'capacity',
                f'would exceed its capacity: {used} requested or in use, capacity {int(limit)}.',
                requested[key],
                others,
            )


def _check_unit(demand: Demand, inventory: Inventory) -> None:
    violated = capacity.unit_violation(
        demand.amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
    if violated is not None:
        limit = f'{_UNIT_REASONS[violated]} {getattr(inventory, violated)}'
        reason = f'does not allow an amount of {demand.amount}: {limit}.'
        raise _refusal(demand, inventory, violated, reason, demand.amount)


def _refusal(
    demand: Demand,
    inventory: Inventory | None,
    rule: str,
    reason: str,
    requested: int,
    used: int = 0,
) -> exception.InvalidAllocation:
    limits = {}
    if inventory is not None:
        limits = {name: getattr(inventory, name) for name in _UNIT_REASONS}
        limits['capacity'] = int(inventory.capacity)
    return exception.InvalidAllocation(
        demand.resource_class,
        demand.provider_uuid,
        rule,
        reason,
        consumer_uuid=demand.consumer_uuid,
        requested=requested,
        used=used,
        limits=limits,
    )


# Reshapes -------------------------------------------------------------------------


def check_reshaped_providers(
    replacements: Mapping[str, Replacement], providers: Mapping[str, Locked]
) -> None:
    """Check that each provider in a reshape exists and has the generation in the request.

    The providers are checked in the order of the request body.

    :param providers: the locked providers, keyed by requested UUID
    :raises exception.UnknownResourceProviders: lists all providers that do not exist
    :raises exception.ResourceProviderGenerationConflict: for the first provider with a stale
        generation
    """
    missing = replacements.keys() - providers.keys()
    for uuid, replacement in replacements.items():
        if uuid in missing:
            raise exception.UnknownResourceProviders(missing, errors.RESOURCE_PROVIDER_NOT_FOUND)
        provider = providers[uuid]
        generation.check_provider(provider.uuid, replacement.generation, provider.generation)


def plan_reshape(replacements: Mapping[str, Replacement], locked: LockedClaims) -> Reshape:
    """Return the inventory changes of a reshape.

    :param replacements: the new inventories of each provider, keyed by provider UUID
    """
    requested = {locked.providers[uuid].id: new for uuid, new in replacements.items()}
    before = _by_provider(locked.inventories)
    return Reshape(
        plans={
            provider_id: plan_changes(before[provider_id], new.inventories)
            for provider_id, new in requested.items()
        },
        current_and_new={**locked.inventories, **_new_inventories(requested, locked)},
    )


def _by_provider(
    current: Mapping[InventoryKey, InventoryUsage],
) -> defaultdict[int, dict[str, InventoryUsage]]:
    by_provider: defaultdict[int, dict[str, InventoryUsage]] = defaultdict(dict)
    for (provider_id, name), stored in current.items():
        by_provider[provider_id][name] = stored
    return by_provider


def _new_inventories(
    requested: Mapping[int, Replacement], locked: LockedClaims
) -> dict[InventoryKey, InventoryUsage]:
    """Return the new inventories of a reshape, with their usage before the reshape.

    :param requested: the new inventories of each provider, keyed by provider id
    """
    new = {}
    for provider_id, replacement in requested.items():
        for name, inventory in replacement.inventories.items():
            replaced = locked.inventories.get((provider_id, name))
            used = replaced.used if replaced else 0
            new[provider_id, name] = InventoryUsage(locked.class_ids[name], inventory, used)
    return new


def check_removed_inventories(plans: Mapping[int, Plan], locked: LockedClaims) -> None:
    """Check that no allocations remain against the inventories that a reshape removes.

    :param plans: the inventory changes of each provider, keyed by provider id
    :raises exception.InventoryInUse: for the first provider with remaining allocations
    """
    remaining = {key: stored.used for key, stored in locked.inventories.items()}
    for key, amount in locked.released.items():
        remaining[key] = remaining.get(key, 0) - amount
    for demand in locked.demands:
        key = demand.provider_id, demand.resource_class
        remaining[key] = remaining.get(key, 0) + demand.amount
    uuids = {provider.id: provider.uuid for provider in locked.providers.values()}
    for provider_id, plan in plans.items():
        in_use = [name for name in plan.remove if remaining.get((provider_id, name), 0) > 0]
        if in_use:
            raise exception.InventoryInUse(in_use, uuids[provider_id])


# Metrics --------------------------------------------------------------------------


def refusal_reason(exc: exception.PlacementException) -> str:
    """Return the reason of a refusal, as the metrics name it."""
    if isinstance(exc, exception.InvalidAllocation):
        return exc.rule
    return _REASON_OF.get(type(exc), 'other')
