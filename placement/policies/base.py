"""The rules that the rules of the routes are made of."""

from oslo_policy import policy

ADMIN_API = 'rule:admin_api'
SERVICE_API = 'rule:service_api'
ADMIN_OR_SERVICE_API = 'rule:admin_or_service_api'
PROJECT_READER_API = 'rule:project_reader_api'
ADMIN_OR_PROJECT_READER_OR_SERVICE_API = 'rule:admin_or_project_reader_or_service_api'

PROJECT_SCOPE = ['project']

# Before the roles service and reader were told apart, one rule guarded everything. With
# `[oslo_policy] enforce_new_defaults = false` it still opens every door.
LEGACY_ADMIN = policy.DeprecatedRule(
    name=ADMIN_API,
    check_str='role:admin',
    deprecated_reason='The API distinguishes the roles admin, service and reader now.',
    deprecated_since='Wallaby',
)


def list_rules() -> list[policy.RuleDefault]:
    """Give the rules that other rules refer to."""
    return [
        policy.RuleDefault(
            name='admin_api',
            check_str='role:admin',
            description='An administrator of the cloud.',
            scope_types=PROJECT_SCOPE,
        ),
        policy.RuleDefault(
            name='service_api',
            check_str='role:service',
            description='Another service of the cloud, such as the one that runs servers.',
            scope_types=PROJECT_SCOPE,
            deprecated_rule=LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='admin_or_service_api',
            check_str='role:admin or role:service',
            description='An administrator or another service.',
            scope_types=PROJECT_SCOPE,
            deprecated_rule=LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='project_reader_api',
            check_str='role:reader and project_id:%(project_id)s',
            description='Who may read what belongs to the project of the request.',
            deprecated_rule=LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='admin_or_project_reader_or_service_api',
            check_str='role:admin or rule:project_reader_api or role:service',
            description='An administrator, a reader of the project, or another service.',
            scope_types=PROJECT_SCOPE,
            deprecated_rule=LEGACY_ADMIN,
        ),
    ]


def rule(
    name: str, check_str: str, description: str, *operations: tuple[str, str]
) -> policy.DocumentedRuleDefault:
    """Make the rule of a route.

    Takes the operations that the rule guards as pairs of method and path.
    """
    return policy.DocumentedRuleDefault(
        name=name,
        check_str=check_str,
        description=description,
        operations=[{'method': method, 'path': path} for method, path in operations],
        scope_types=PROJECT_SCOPE,
    )
