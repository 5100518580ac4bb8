"""Policy rules of traits."""

from oslo_policy import policy

from placement.policies import base

LIST = 'placement:traits:list'
SHOW = 'placement:traits:show'
UPDATE = 'placement:traits:update'
DELETE = 'placement:traits:delete'
PROVIDER_LIST = 'placement:resource_providers:traits:list'
PROVIDER_UPDATE = 'placement:resource_providers:traits:update'
PROVIDER_DELETE = 'placement:resource_providers:traits:delete'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of traits."""
    return [
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List traits.',
            ('GET', '/traits'),
        ),
        base.rule(
            SHOW,
            base.ADMIN_OR_SERVICE_API,
            'Check whether a trait exists.',
            ('GET', '/traits/{name}'),
        ),
        base.rule(
            UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Create a trait if it does not exist.',
            ('PUT', '/traits/{name}'),
        ),
        base.rule(
            DELETE,
            base.ADMIN_OR_SERVICE_API,
            'Delete a trait.',
            ('DELETE', '/traits/{name}'),
        ),
        base.rule(
            PROVIDER_LIST,
            base.ADMIN_OR_SERVICE_API,
            'List the traits of a resource provider.',
            ('GET', '/resource_providers/{uuid}/traits'),
        ),
        base.rule(
            PROVIDER_UPDATE,
            base.ADMIN_OR_SERVICE_API,
            'Replace the traits of a resource provider.',
            ('PUT', '/resource_providers/{uuid}/traits'),
        ),
        base.rule(
            PROVIDER_DELETE,
            base.ADMIN_OR_SERVICE_API,
            'Remove all traits from a resource provider.',
            ('DELETE', '/resource_providers/{uuid}/traits'),
        ),
    ]
