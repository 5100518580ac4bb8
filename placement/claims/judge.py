"""Accept or reject the claims of a request.

All functions are pure: they receive the stored data as arguments, for example in a `Ground`, and do
not access the database.
"""

from collections.abc import Iterable, Mapping

from placement import capacity, exception
from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.claims.model import Claim, Consumer, Demand, Ground
from placement.objects import generation

_UNIT_REASONS = {
    'min_unit': 'less than its min_unit',
    'max_unit': 'more than its max_unit',
    'step_size': 'not a multiple of its step_size',
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


def check_providers(ground: Ground) -> None:
    """Check that all providers in the claims exist.

    :raises exception.UnknownResourceProviders: lists all providers that do not exist
    """
    if ground.missing_providers:
        raise exception.UnknownResourceProviders(ground.missing_providers)


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
            raise _refusal(demand, 'no_inventory', 'does not exist.')
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
                'capacity',
                f'would exceed its capacity: {used} requested or in use, capacity {int(limit)}.',
            )


def _check_unit(demand: Demand, inventory: Inventory) -> None:
    violated = capacity.unit_violation(
        demand.amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
    if violated is not None:
        limit = f'{_UNIT_REASONS[violated]} {getattr(inventory, violated)}'
        raise _refusal(demand, violated, f'does not allow an amount of {demand.amount}: {limit}.')


def _refusal(demand: Demand, rule: str, reason: str) -> exception.InvalidAllocation:
    return exception.InvalidAllocation(demand.resource_class, demand.provider_uuid, rule, reason)
