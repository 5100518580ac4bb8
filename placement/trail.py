"""The trail in the log: why claims were refused."""

from placement import exception


def refusal(exc: exception.PlacementException) -> str:
    """Return why claims are refused, for a line of the log."""
    match exc:
        case exception.InvalidAllocation():
            return f'{exc.resource_class} on {exc.provider_uuid}: {_violation(exc)}'
        case exception.ConsumerGenerationConflict():
            given, current = ('null' if g is None else g for g in (exc.given, exc.current))
            return f'consumer generation {given} given, {current} stored'
        case exception.ResourceProviderGenerationConflict():
            return f'provider {exc.uuid}: generation {exc.given} given, {exc.current} stored'
        case exception.ConcurrentChange(provider_uuids=[]):
            return 'concurrent change'
        case exception.ConcurrentChange():
            return f'provider {", ".join(exc.provider_uuids)}: concurrent change'
        case exception.UnknownResourceProviders():
            return f'provider {", ".join(exc.uuids)}: unknown'
        case exception.InventoryInUse():
            return f'{", ".join(exc.resource_classes)} on {exc.provider_uuid}: inventory in use'
    return str(exc)


def _violation(exc: exception.InvalidAllocation) -> str:
    if exc.rule == 'no_inventory':
        return 'no inventory'
    if exc.rule == 'capacity':
        return f'{exc.requested} requested, {exc.used} of {exc.limits["capacity"]} used'
    units = ', '.join(
        f'{name} {exc.limits[name]}' for name in ('min_unit', 'max_unit', 'step_size')
    )
    return f'{units}: {exc.requested} requested'
