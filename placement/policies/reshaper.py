"""Rules of the reshaper."""

from oslo_policy import policy

from placement.policies import base

RESHAPE = 'placement:reshaper:reshape'


def list_rules() -> list[policy.RuleDefault]:
    """Give the rules of the reshaper."""
    return [
        base.rule(
            RESHAPE,
            base.SERVICE_API,
            'Move inventory between resource providers, with the allocations of it.',
            ('POST', '/reshaper'),
        ),
    ]
