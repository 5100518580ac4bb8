"""Policy rules of resource classes."""

from oslo_policy import policy

from placement.policies import base

LIST = 'placement:resource_classes:list'
CREATE = 'placement:resource_classes:create'
SHOW = 'placement:resource_classes:show'
UPDATE = 'placement:resource_classes:update'
DELETE = 'placement:resource_classes:delete'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of resource classes."""
    return [
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List resource classes.',
            ('GET', '/resource_classes'),
        ),
        base.rule(
            CREATE,
            base.ADMIN_OR_SERVICE_API,
            'Create a resource class.',
            ('POST', '/resource_classes'),
        ),
        base.rule(
            SHOW,
            base.ADMIN_OR_SERVICE_API,
            'Show a resource class.',
            ('GET', '/resource_classes/{name}'),
        ),
        base.rule(
            UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Create a resource class if it does not exist. Before 1.7, rename a resource class.',
            ('PUT', '/resource_classes/{name}'),
        ),
        base.rule(
            DELETE,
            base.ADMIN_OR_SERVICE_API,
            'Delete a resource class.',
            ('DELETE', '/resource_classes/{name}'),
        ),
    ]
