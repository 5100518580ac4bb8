"""The policy rules and their defaults, in one module for each handler module."""

from oslo_policy import policy

from placement.policies import (
    aggregate,
    allocation,
    allocation_candidate,
    base,
    inventory,
    reshaper,
    resource_class,
    resource_provider,
    trait,
    usage,
)


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules of the service, in the order of the policy sample file."""
    entities = (
        base,
        resource_provider,
        resource_class,
        inventory,
        aggregate,
        usage,
        trait,
        allocation,
        allocation_candidate,
        reshaper,
    )
    return [rule for entity in entities for rule in entity.list_rules()]
