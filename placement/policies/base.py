"""The rules to which the rules of the routes refer."""

from oslo_policy import policy

ADMIN_API = 'rule:admin_api'
SERVICE_API = 'rule:service_api'
ADMIN_OR_SERVICE_API = 'rule:admin_or_service_api'
PROJECT_READER_API = 'rule:project_reader_api'
ADMIN_OR_PROJECT_READER_OR_SERVICE_API = 'rule:admin_or_project_reader_or_service_api'

PROJECT_SCOPE = ['project']

# Formerly this rule protected all routes. With `[oslo_policy] enforce_new_defaults = false`, the
# role admin is still sufficient for every request.
LEGACY_ADMIN = policy.DeprecatedRule(
    name=ADMIN_API,
    check_str='role:admin',
    deprecated_reason='The API now distinguishes the roles admin, service and reader.',
    deprecated_since='Wallaby',
)


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules to which other rules refer."""
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
            description='Another service of the cloud, such as the compute service.',
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
            description='A reader of the project that the request names.',
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
    """Return the rule of one or more routes.

    :param operations: pairs of method and path that the rule protects
    """
    return policy.DocumentedRuleDefault(
        name=name,
        check_str=check_str,
        description=description,
        operations=[{'method': method, 'path': path} for method, path in operations],
        scope_types=PROJECT_SCOPE,
    )
