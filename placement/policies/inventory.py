"""Policy rules of inventories."""

from oslo_policy import policy

from placement.policies import base

LIST = 'placement:resource_providers:inventories:list'
CREATE = 'placement:resource_providers:inventories:create'
SHOW = 'placement:resource_providers:inventories:show'
UPDATE = 'placement:resource_providers:inventories:update'
DELETE = 'placement:resource_providers:inventories:delete'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of inventories."""
    return [
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List the inventories of a resource provider.',
            ('GET', '/resource_providers/{uuid}/inventories'),
        ),
        base.rule(
            CREATE,
            base.ADMIN_OR_SERVICE_API,
            'Create the inventory of one class of a resource provider.',
            ('POST', '/resource_providers/{uuid}/inventories'),
        ),
        base.rule(
            SHOW,
            base.ADMIN_OR_SERVICE_API,
            'Show the inventory of one class of a resource provider.',
            ('GET', '/resource_providers/{uuid}/inventories/{resource_class}'),
        ),
        base.rule(
            UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Replace all inventories of a resource provider, or the inventory of one class.',
            ('PUT', '/resource_providers/{uuid}/inventories'),
            ('PUT', '/resource_providers/{uuid}/inventories/{resource_class}'),
        ),
        base.rule(
            DELETE,
            base.ADMIN_OR_SERVICE_API,
            'Delete all inventories of a resource provider, or the inventory of one class.',
            ('DELETE', '/resource_providers/{uuid}/inventories'),
            ('DELETE', '/resource_providers/{uuid}/inventories/{resource_class}'),
        ),
    ]
