"""Policy rules of allocation candidates."""

from oslo_policy import policy

from placement.policies import base

LIST = 'placement:allocation_candidates:list'


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of allocation candidates."""
    return [
        base.rule(
            LIST,
            base.ADMIN_OR_SERVICE_API,
            'List allocation candidates.',
            ('GET', '/allocation_candidates'),
        ),
    ]
