"""The policy rules and their defaults, derived from the operations of `handlers`."""

from collections.abc import Iterator

from oslo_policy import policy

from placement.handlers import OPERATIONS
from placement.handlers.operation import Operation, Rule

_PROJECT_SCOPE = ['project']

# In earlier releases, this rule protected all API operations. If the operator sets
# `[oslo_policy] enforce_new_defaults = false`, the admin role still allows every request.
_LEGACY_ADMIN = policy.DeprecatedRule(
    name='rule:admin_api',
    check_str='role:admin',
    deprecated_reason='The API now distinguishes the roles admin, service and reader.',
    deprecated_since='Wallaby',
)


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules of the service, in the order of the paths that they protect."""
    return [*_base_rules(), *_rules_of_operations()]


def _base_rules() -> list[policy.RuleDefault]:
    """Return the rules to which the rules of the operations refer."""
    return [
        policy.RuleDefault(
            name='admin_api',
            check_str='role:admin',
            description='An administrator of the cloud.',
            scope_types=_PROJECT_SCOPE,
        ),
        policy.RuleDefault(
            name='service_api',
            check_str='role:service',
            description='Another service of the cloud, such as the compute service.',
            scope_types=_PROJECT_SCOPE,
            deprecated_rule=_LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='admin_or_service_api',
            check_str='role:admin or role:service',
            description='An administrator or another service.',
            scope_types=_PROJECT_SCOPE,
            deprecated_rule=_LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='project_reader_api',
            check_str='role:reader and project_id:%(project_id)s',
            description='A user with the reader role in the project that the request specifies.',
            deprecated_rule=_LEGACY_ADMIN,
        ),
        policy.RuleDefault(
            name='admin_or_project_reader_or_service_api',
            check_str='role:admin or rule:project_reader_api or role:service',
            description='An administrator, another service, or a reader of the requested project.',
            scope_types=_PROJECT_SCOPE,
            deprecated_rule=_LEGACY_ADMIN,
        ),
    ]


def _rules_of_operations() -> Iterator[policy.RuleDefault]:
    protected: dict[Rule, list[Operation]] = {}
    for methods in OPERATIONS.values():
        for operation in methods.values():
            if operation.rule is not None:
                protected.setdefault(operation.rule, []).append(operation)
    for rule, operations in protected.items():
        yield policy.DocumentedRuleDefault(
            name=rule.name,
            check_str=rule.check,
            description=rule.description,
            operations=[{'method': one.method, 'path': one.path} for one in operations],
            scope_types=_PROJECT_SCOPE,
        )
