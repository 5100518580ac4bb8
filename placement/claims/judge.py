"""Decide whether a request can be granted. Pure: no function reads the database."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from placement import capacity, errors, exception
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.claims.model import Claim, Consumer, Demand, Ground, Replacement, Reshape
from placement.objects import generation, inventory_plan
from placement.objects.inventory_plan import Plan
from placement.objects.provider_locks import Locked

_UNIT_REASONS = {
    'min_unit': 'less than its min_unit',
    'max_unit': 'more than its max_unit',
    'step_size': 'not a multiple of its step_size',
}


# Generations and providers --------------------------------------------------------


def has_stale_consumer(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> bool:
    """Return whether `check_consumers` would fail."""
    return any(
        claim.checks_generation and claim.generation != _generation(claim, consumers)
        for claim in claims
    )


def check_consumers(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> None:
    """Check that the consumer generations in the request are the stored ones.

    :param consumers: the stored consumers by requested UUID
    :raises exception.ConsumerGenerationConflict: for the first claim with a stale generation
    """
    for claim in claims:
        if claim.checks_generation:
            current = _generation(claim, consumers)
            generation.check_consumer(claim.consumer_uuid, claim.generation, current)


def check_providers(ground: Ground) -> None:
    """Check that the providers of the claims exist.

    :raises exception.UnknownResourceProviders: for all that do not exist
    """
    if ground.missing_providers:
        raise exception.UnknownResourceProviders(ground.missing_providers)


def check_reshaped_providers(
    replacements: Mapping[str, Replacement], providers: Mapping[str, Locked]
) -> None:
    """Check existence and generation of the providers of a reshape, in the order of the body.

    :param providers: the locked providers by requested UUID
    :raises exception.UnknownResourceProviders: for all that do not exist
    :raises exception.ResourceProviderGenerationConflict:
    """
    missing = replacements.keys() - providers.keys()
    for uuid, replacement in replacements.items():
        if uuid in missing:
            raise exception.UnknownResourceProviders(missing, errors.RESOURCE_PROVIDER_NOT_FOUND)
        provider = providers[uuid]
        generation.check_provider(provider.uuid, replacement.generation, provider.generation)


def _generation(claim: Claim, consumers: Mapping[str, Consumer]) -> int | None:
    stored = consumers.get(claim.consumer_uuid)
    return stored.generation if stored else None


# Amounts --------------------------------------------------------------------------


def check_amounts(
    demands: Iterable[Demand],
    inventories: Mapping[InventoryKey, InventoryUsage],
    released: Mapping[InventoryKey, int],
) -> None:
    """Check that all demands together can be granted.

    If the usage of a provider exceeds its capacity, the request may keep or reduce the usage.

    :param demands: the requested allocations of all consumers
    :param inventories: the inventories with their usage before the request
    :param released: the amounts that the consumers of the request have before it
    :raises exception.InvalidAllocation: for the first demand that cannot be granted
    """
    requested: dict[InventoryKey, int] = {}
    for demand in demands:
        key = demand.provider_id, demand.resource_class
        current = inventories.get(key)
        if current is None:
            raise _refusal(demand, 'does not exist.')
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
                f'would exceed its capacity: {used} requested or in use, capacity {int(limit)}.',
            )


def _check_unit(demand: Demand, inventory: Inventory) -> None:
    violated = capacity.unit_violation(
        demand.amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
    if violated is not None:
        limit = f'{_UNIT_REASONS[violated]} {getattr(inventory, violated)}'
        raise _refusal(demand, f'does not allow an amount of {demand.amount}: {limit}.')


def _refusal(demand: Demand, reason: str) -> exception.InvalidAllocation:
    return exception.InvalidAllocation(demand.resource_class, demand.provider_uuid, reason)


# Reshape --------------------------------------------------------------------------


def plan_reshape(
    replacements: Mapping[str, Replacement],
    ground: Ground,
    current: Mapping[InventoryKey, InventoryUsage],
    class_ids: Mapping[str, int],
) -> Reshape:
    """Return what a reshape changes.

    :param current: all inventories of all providers of the request
    :param class_ids: ids by name of all classes in the request
    """
    requested = {ground.providers[uuid].id: new for uuid, new in replacements.items()}
    before = _by_provider(current)
    after = _inventories_after(requested, current, class_ids)
    current_ids = {name: stored.resource_class_id for (_, name), stored in current.items()}
    return Reshape(
        plans={
            provider_id: inventory_plan.plan_changes(before[provider_id], new.inventories)
            for provider_id, new in requested.items()
        },
        current_and_new={**current, **after},
        after=after,
        class_ids={**current_ids, **class_ids},
        # Clients observe the increments of two steps: current and new inventories together, then
        # the new ones alone. Without new inventories, the first step changes nothing.
        increments={
            provider_id: 2 if new.inventories else 1 for provider_id, new in requested.items()
        },
    )


def _by_provider(
    current: Mapping[InventoryKey, InventoryUsage],
) -> defaultdict[int, dict[str, InventoryUsage]]:
    by_provider: defaultdict[int, dict[str, InventoryUsage]] = defaultdict(dict)
    for (provider_id, name), stored in current.items():
        by_provider[provider_id][name] = stored
    return by_provider


def _inventories_after(
    requested: Mapping[int, Replacement],
    current: Mapping[InventoryKey, InventoryUsage],
    class_ids: Mapping[str, int],
) -> dict[InventoryKey, InventoryUsage]:
    """Return the inventories after a reshape, with their usage before it.

    :param requested: the new inventories by provider id
    """
    after = {key: stored for key, stored in current.items() if key[0] not in requested}
    for provider_id, new in requested.items():
        for name, inventory in new.inventories.items():
            replaced = current.get((provider_id, name))
            used = replaced.used if replaced else 0
            after[provider_id, name] = InventoryUsage(class_ids[name], inventory, used)
    return after


def check_removed_inventories(
    plans: Mapping[int, Plan], ground: Ground, current: Mapping[InventoryKey, InventoryUsage]
) -> None:
    """Check that no allocations remain against the inventories that a reshape removes.

    :param current: all inventories of all providers of the request
    :raises exception.InventoryInUse: for the first provider with such allocations
    """
    remaining = {key: stored.used for key, stored in current.items()}
    for key, amount in ground.released.items():
        remaining[key] = remaining.get(key, 0) - amount
    for demand in ground.demands:
        key = demand.provider_id, demand.resource_class
        remaining[key] = remaining.get(key, 0) + demand.amount
    uuids = {provider.id: provider.uuid for provider in ground.providers.values()}
    for provider_id, plan in plans.items():
        in_use = [name for name in plan.remove if remaining.get((provider_id, name), 0) > 0]
        if in_use:
            raise exception.InventoryInUse(in_use, uuids[provider_id])
