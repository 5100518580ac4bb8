"""Rules of usages."""

from oslo_policy import policy

from placement.policies import base

PROVIDER_USAGES = 'placement:resource_providers:usages'
TOTAL_USAGES = 'placement:usages'


def list_rules() -> list[policy.RuleDefault]:
    """Give the rules of usages."""
    return [
        base.rule(
            PROVIDER_USAGES,
            base.ADMIN_OR_SERVICE_API,
            'Show what is used of a resource provider.',
            ('GET', '/resource_providers/{uuid}/usages'),
        ),
        base.rule(
            TOTAL_USAGES,
            base.ADMIN_OR_PROJECT_READER_OR_SERVICE_API,
            'Show what a project uses, or one of its users.',
            ('GET', '/usages'),
        ),
    ]
