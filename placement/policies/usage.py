"""Policy rules of usages."""

from oslo_policy import policy

from placement.policies import base

PROVIDER_USAGES = 'placement:resource_providers:usages'
TOTAL_USAGES = 'placement:usages'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of usages."""
    return [
        base.rule(
            PROVIDER_USAGES,
            base.ADMIN_OR_SERVICE_API,
            'Show the usages of a resource provider.',
            ('GET', '/resource_providers/{uuid}/usages'),
        ),
        base.rule(
            TOTAL_USAGES,
            base.ADMIN_OR_PROJECT_READER_OR_SERVICE_API,
            'Show the total usages of a project, or of a user in a project.',
            ('GET', '/usages'),
        ),
    ]
