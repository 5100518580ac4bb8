"""Policy rules of resource providers."""

from oslo_policy import policy

from placement.policies import base

LIST = 'placement:resource_providers:list'
CREATE = 'placement:resource_providers:create'
SHOW = 'placement:resource_providers:show'
UPDATE = 'placement:resource_providers:update'
DELETE = 'placement:resource_providers:delete'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of resource providers."""
    return [
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List resource providers.',
            ('GET', '/resource_providers'),
        ),
        base.rule(
            CREATE,
            base.ADMIN_OR_SERVICE_API,
            'Create a resource provider.',
            ('POST', '/resource_providers'),
        ),
        base.rule(
            SHOW,
            base.ADMIN_OR_SERVICE_API,
            'Show a resource provider.',
            ('GET', '/resource_providers/{uuid}'),
        ),
        base.rule(
            UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Update a resource provider.',
            ('PUT', '/resource_providers/{uuid}'),
        ),
        base.rule(
            DELETE,
            base.ADMIN_OR_SERVICE_API,
            'Delete a resource provider.',
            ('DELETE', '/resource_providers/{uuid}'),
        ),
    ]
