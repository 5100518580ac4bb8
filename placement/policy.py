"""The policy enforcer of this process.

`placement.policies` defines the rules and their defaults. The operator's policy file can override
them. When this file changes, oslo.policy reads it again.

PERF: oslo.policy looks for the policy file and inspects the signature of each check whenever a rule
is evaluated, which took 20 % of a read of one provider (2026-11). Therefore this module remembers
permissions for a second. A change of the policy file takes effect when they are forgotten.
"""

from collections.abc import Hashable, Mapping, Sequence
import logging
import time
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import policy

from placement import exception, policies

LOG = logging.getLogger(__name__)

# oslo.policy logs each evaluation of a rule with this logger, at the level DEBUG.
_EVALUATIONS = logging.getLogger(policy.__name__)

REMEMBERED_SECONDS = 1.0
# Callers choose a part of what is remembered, for example the project in the query of GET /usages.
MAX_REMEMBERED = 1000


class _Permissions:
    """The permissions that were granted within the last second."""

    def __init__(self) -> None:
        self._granted: set[Hashable] = set()
        self._expiry = 0.0

    def current(self) -> set[Hashable]:
        """Return the remembered permissions.

        A caller adds a permission to the set that this method returned before the rule was
        evaluated. If the permissions are forgotten meanwhile, the addition has no effect.
        """
        now = time.monotonic()
        if now >= self._expiry or len(self._granted) >= MAX_REMEMBERED:
            self._granted, self._expiry = set(), now + REMEMBERED_SECONDS
        return self._granted

    def forget(self) -> None:
        """Forget all permissions."""
        self._granted, self._expiry = set(), 0.0


_enforcer: policy.Enforcer | None = None
_permissions = _Permissions()


def init(
    conf: cfg.ConfigOpts,
    suppress_deprecation_warnings: bool = False,
    rules: Sequence[policy.RuleDefault] | None = None,
) -> None:
    """Create the enforcer if it does not exist.

    :param conf: the parsed configuration, with the options of `[oslo_policy]`
    :param suppress_deprecation_warnings: do not log warnings about deprecated rules
    :param rules: the rules to enforce; by default all rules of the service
    :raises exception.InvalidPolicyFile: a policy file is malformed
    """
    global _enforcer
    if _enforcer is not None:
        return
    enforcer = policy.Enforcer(conf)
    # The default of every rule has changed. Without this setting, oslo.policy would log a warning
    # for each rule, even if the operator has no policy file.
    enforcer.suppress_default_change_warnings = True
    enforcer.suppress_deprecation_warnings = suppress_deprecation_warnings
    enforcer.register_defaults(policies.list_rules() if rules is None else rules)
    try:
        enforcer.load_rules()
    except ValueError as error:
        raise exception.InvalidPolicyFile(_path(enforcer), _yaml_error(error)) from error
    except (AttributeError, TypeError) as error:
        # oslo.policy does not check the types of the document and its values.
        reason = 'it does not map names of rules to texts'
        raise exception.InvalidPolicyFile(_path(enforcer), reason) from error
    _enforcer = enforcer
    _permissions.forget()


def _yaml_error(error: ValueError) -> str:
    """Return the message of the YAML parser without the excerpt, which it indents."""
    lines = [line for line in str(error).splitlines() if not line.startswith('    ')]
    return ' '.join(line.strip() for line in lines).rstrip(':')


def _path(enforcer: policy.Enforcer) -> str:
    return str(enforcer.policy_path or enforcer.policy_file)


def reset() -> None:
    """Remove the enforcer, so that `init` creates a new one."""
    global _enforcer
    if _enforcer is not None:
        _enforcer.clear()
        _enforcer = None
    _permissions.forget()


def set_rules(rules: policy.Rules, overwrite: bool = True) -> None:
    """Enforce the given rules.

    :param overwrite: remove the current rules first; otherwise, add the given rules to them
    """
    assert _enforcer is not None, 'placement.policy.init() was not called'
    _enforcer.set_rules(rules, overwrite=overwrite)
    _permissions.forget()


def get_enforcer() -> policy.Enforcer:
    """Return the enforcer for the command line tools of oslo.policy.

    The tools load this function through the entry point `oslo.policy.enforcer` and use the
    process-wide configuration. If the command line of the tool names configuration files, the tool
    has already parsed them. Otherwise, this function parses the default files of Placement.
    """
    conf = cfg.CONF
    if not _has_parsed_files(conf):
        conf([], project='placement')
    init(conf)
    assert _enforcer is not None
    return _enforcer


def _has_parsed_files(conf: cfg.ConfigOpts) -> bool:
    try:
        return bool(conf.config_file or conf.config_dir)
    except cfg.NoSuchOptError:  # nothing is parsed yet
        return False


def authorize(
    context: oslo_context.RequestContext,
    action: str,
    target: Mapping[str, Any],
    do_raise: bool = True,
) -> bool:
    """Return whether the policy allows the caller to perform an action.

    :param context: the identity, the roles and the scope of the caller
    :param action: the name of a rule
    :param target: attributes of the object on which the caller performs the action; rules compare
        them with attributes of the caller
    :param do_raise: raise PolicyNotAuthorized instead of returning False
    :raises PolicyNotAuthorized: the rule or the scope of the token does not allow the action
    :raises policy.PolicyNotRegistered: the rule does not exist
    """
    assert _enforcer is not None, 'placement.policy.init() was not called'
    permissions = _permissions.current()
    permission = _permission(_enforcer, context, action, target)
    if permission is not None and permission in permissions:
        return True
    try:
        # If do_raise is true, oslo.policy raises InvalidScope for a token of the wrong scope.
        granted = bool(_enforcer.authorize(action, target, context, do_raise=do_raise))
    except (policy.PolicyNotAuthorized, policy.InvalidScope) as error:
        LOG.debug('%s', error)
        raise exception.PolicyNotAuthorized(action) from error
    if granted and permission is not None:
        permissions.add(permission)
    return granted


def _permission(
    enforcer: policy.Enforcer,
    context: oslo_context.RequestContext,
    action: str,
    target: Mapping[str, Any],
) -> Hashable | None:
    """Return everything on which a decision depends; None if the decision is not to be remembered.

    Tests replace the enforcer, so the enforcer is a part of the permission.
    """
    if _EVALUATIONS.isEnabledFor(logging.DEBUG):
        return None
    caller = context.to_policy_values().items()
    values = tuple([(name, tuple(v) if isinstance(v, list) else v) for name, v in caller])
    permission = (enforcer, action, values, tuple(target.items()))
    try:
        hash(permission)
    except TypeError:
        return None
    return permission
