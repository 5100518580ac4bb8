"""Write claims, and count the refused ones by reason."""

from placement import exception, telemetry
from placement.db import engine

# The reason of each exception class, as the metrics name it.
REASONS: dict[type[exception.PlacementException], str] = {
    exception.ConcurrentChange: 'concurrent_change',
    exception.ConsumerGenerationConflict: 'consumer_generation',
    exception.InventoryInUse: 'inventory_in_use',
    exception.ResourceProviderGenerationConflict: 'provider_generation',
    exception.UnknownResourceClasses: 'unknown_resource_class',
    exception.UnknownResourceProviders: 'unknown_provider',
}


def write_claims(work: engine.Work[None], min_attempts: int) -> None:
    """Execute `engine.write(work, min_attempts)`, and count the failure if the claims are refused.

    An unavailable database is not a refusal.
    """
    try:
        engine.write(work, min_attempts)
    except exception.ServiceUnavailable:
        raise
    except exception.PlacementException as exc:
        telemetry.refused(reason(exc))
        raise


def reason(exc: exception.PlacementException) -> str:
    """Return the reason of a refusal, as the metrics name it."""
    if isinstance(exc, exception.InvalidAllocation):
        return exc.rule
    return REASONS.get(type(exc), 'other')
