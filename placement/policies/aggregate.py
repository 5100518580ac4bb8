"""Policy rules of aggregates."""

from oslo_policy import policy

from placement.policies import base

LIST = 'placement:resource_providers:aggregates:list'
UPDATE = 'placement:resource_providers:aggregates:update'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of aggregates."""
    return [
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List the aggregates of a resource provider.',
            ('GET', '/resource_providers/{uuid}/aggregates'),
        ),
        base.rule(
            UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Replace the aggregates of a resource provider.',
            ('PUT', '/resource_providers/{uuid}/aggregates'),
        ),
    ]
