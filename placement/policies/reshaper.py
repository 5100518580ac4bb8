"""Policy rules of the reshaper."""

from oslo_policy import policy

from placement.policies import base

RESHAPE = 'placement:reshaper:reshape'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of the reshaper."""
    return [
        base.rule(
            RESHAPE,
            base.SERVICE_API,
            'Move inventories and their allocations between resource providers.',
            ('POST', '/reshaper'),
        ),
    ]
