"""The base rules, to which the rules of all API operations refer."""

from oslo_policy import policy

ADMIN_API = 'rule:admin_api'
SERVICE_API = 'rule:service_api'
ADMIN_OR_SERVICE_API = 'rule:admin_or_service_api'
PROJECT_READER_API = 'rule:project_reader_api'
ADMIN_OR_PROJECT_READER_OR_SERVICE_API = 'rule:admin_or_project_reader_or_service_api'

PROJECT_SCOPE = ['project']

# In earlier releases, this rule protected all API operations. If the operator sets
# `[oslo_policy] enforce_new_defaults = false`, the admin role still allows every request.
LEGACY_ADMIN = policy.DeprecatedRule(
    name=ADMIN_API,
    check_str='role:admin',
    deprecated_reason='The API now distinguishes the roles admin, service and reader.',
    deprecated_since='Wallaby',
)


def list_rules() -> list[policy.RuleDefault]:
    """Return the base rules."""
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
            description='A user with the reader role in the project that the request specifies.',
            deprecated_rule=LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='admin_or_project_reader_or_service_api',
            check_str='role:admin or rule:project_reader_api or role:service',
            description='An administrator, another service, or a reader of the requested project.',
            scope_types=PROJECT_SCOPE,
            deprecated_rule=LEGACY_ADMIN,
        ),
    ]


def rule(
    name: str, check_str: str, description: str, *operations: tuple[str, str]
) -> policy.DocumentedRuleDefault:
    """Return the rule that protects one or more API operations.

    :param operations: the HTTP method and the path of each protected operation
    """
    return policy.DocumentedRuleDefault(
        name=name,
        check_str=check_str,
        description=description,
        operations=[{'method': method, 'path': path} for method, path in operations],
        scope_types=PROJECT_SCOPE,
    )
