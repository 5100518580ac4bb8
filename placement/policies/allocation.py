"""Policy rules of allocations."""

from oslo_policy import policy

from placement.policies import base

MANAGE = 'placement:allocations:manage'
LIST = 'placement:allocations:list'
UPDATE = 'placement:allocations:update'
DELETE = 'placement:allocations:delete'
PROVIDER_LIST = 'placement:resource_providers:allocations:list'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of allocations."""
    return [
        base.rule(
            MANAGE,
            base.ADMIN_OR_SERVICE_API,
            'Replace the allocations of several consumers.',
            ('POST', '/allocations'),
        ),
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List the allocations of a consumer.',
            ('GET', '/allocations/{consumer_uuid}'),
        ),
        base.rule(
            UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Replace the allocations of a consumer.',
            ('PUT', '/allocations/{consumer_uuid}'),
        ),
        base.rule(
            DELETE,
            base.ADMIN_OR_SERVICE_API,
            'Delete the allocations of a consumer.',
            ('DELETE', '/allocations/{consumer_uuid}'),
        ),
        base.rule(
            PROVIDER_LIST,
            base.ADMIN_OR_SERVICE_API,
            'List the allocations of a resource provider.',
            ('GET', '/resource_providers/{uuid}/allocations'),
        ),
    ]
