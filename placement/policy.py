"""The policy enforcer of this process.

`placement.policies` contains the rules and their defaults. The operator's policy files can override
them. If the files change, a new enforcer replaces the current one. If the changed files cannot be
used, the current one stays.

`placement.permissions` remembers granted permissions for a second. When they are forgotten, this
module looks for changed files.
"""

from collections.abc import Mapping, Sequence
import graphlib
import logging
import threading
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from placement import exception, permissions, policies, policy_files, policy_remote, telemetry

LOG = logging.getLogger(__name__)

# Files that cannot be used are reported again after this time.
REPORT_SECONDS = 600.0

# For example, an expression contains an incomplete `%(project_id)`, or oslo.policy cannot parse the
# left side of a check as an expression of Python.
_EVALUATION_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    SyntaxError,
)


class _Source:
    """The policy files, and the enforcer of the rules in them.

    :ivar enforcer: enforces the rules of the last files that could be used
    :ivar problem: why the current files cannot be used, or None
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        suppress_deprecation_warnings: bool,
        rules: Sequence[policy.RuleDefault],
    ) -> None:
        """:raises exception.InvalidPolicyFile: a policy file cannot be used"""
        self._conf = conf
        self._suppress = suppress_deprecation_warnings
        self._defaults = rules
        self._lock = threading.Lock()
        self._state = policy_files.state(conf)
        self._has_file = conf.find_file(conf.oslo_policy.policy_file) is not None
        self._reported = 0.0
        self.problem: exception.InvalidPolicyFile | None = None
        self.enforcer = self._load()

    def refresh(self, now: float) -> None:
        """Replace the enforcer if the files have changed and can be used.

        :param now: the time of the monotonic clock, in seconds
        """
        # One thread replaces the enforcer. The others use the current one meanwhile.
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._refresh(now)
        finally:
            self._lock.release()

    def _refresh(self, now: float) -> None:
        state = policy_files.state(self._conf)
        if state != self._state:
            try:
                self._use(self._load(), state)
            except exception.InvalidPolicyFile as problem:
                self._keep(problem, state)
        if self.problem is not None and now >= self._reported + REPORT_SECONDS:
            self._reported = now
            LOG.error('The previous policy rules stay in force. %s', self.problem)

    def _use(self, enforcer: policy.Enforcer, state: Sequence[Any]) -> None:
        global _enforcer
        if policy_files.state(self._conf) != state:
            return  # A file changed after it was checked. The next refresh reads the files again.
        self._state = state
        self.enforcer = _enforcer = enforcer
        self.problem = None
        telemetry.policy_usable(True)
        LOG.info('The policy files have changed, and the new rules are in force.')

    def _keep(self, problem: exception.InvalidPolicyFile, state: Sequence[Any]) -> None:
        self._state = state
        if str(problem) != str(self.problem):
            self._reported = -REPORT_SECONDS
        self.problem = problem
        telemetry.policy_usable(False)

    def _load(self) -> policy.Enforcer:
        """Return an enforcer of the rules in the files, which does not read the files again.

        :raises exception.InvalidPolicyFile: a policy file cannot be used
        """
        path = self._conf.oslo_policy.policy_file
        exists = self._conf.find_file(path) is not None
        if self._has_file and not exists:
            raise exception.InvalidPolicyFile(path, 'it does not exist any more')
        try:
            files = policy_files.read(self._conf)
            for file in files:
                if file.error:
                    raise exception.InvalidPolicyFile(file.path, file.error)
            enforcer = _new_enforcer(self._conf, self._suppress, self._defaults)
        except graphlib.CycleError as error:
            _, cycle = error.args
            reason = f'these rules refer to each other in a cycle: {", ".join(sorted(set(cycle)))}'
            raise exception.InvalidPolicyFile(_origin(files, cycle), reason) from error
        except (OSError, ValueError, TypeError, AttributeError, RecursionError, cfg.Error) as error:
            # A directory cannot be read, or a file has changed since it was checked.
            path = getattr(error, 'filename', None) or path
            raise exception.InvalidPolicyFile(path, f'{type(error).__name__}: {error}') from error
        self._has_file = exists
        return enforcer


def _origin(files: Sequence[policy_files.PolicyFile], names: Sequence[str]) -> str:
    """Return the path of the last file that contains one of the rules."""
    return next(
        file.path for file in reversed(files) if not set(names).isdisjoint(file.content or ())
    )


_enforcer: policy.Enforcer | None = None
_source: _Source | None = None


def _refresh(now: float) -> None:
    if _source is not None:
        _source.refresh(now)


_permissions = permissions.Permissions(_refresh)


def init(
    conf: cfg.ConfigOpts,
    suppress_deprecation_warnings: bool = False,
    rules: Sequence[policy.RuleDefault] | None = None,
) -> None:
    """Create the enforcer if it does not exist.

    :param conf: the parsed configuration, with the options of `[oslo_policy]`
    :param suppress_deprecation_warnings: do not log warnings about deprecated rules
    :param rules: the rules to enforce; by default all rules of the service
    :raises exception.InvalidPolicyFile: a policy file cannot be used
    """
    global _enforcer, _source
    if _enforcer is not None:
        return
    # The tools of oslo.policy have not registered the options. This registers them only.
    policy_opts.set_defaults(conf)
    defaults = policies.list_rules() if rules is None else rules
    _source = _Source(conf, suppress_deprecation_warnings, defaults)
    _enforcer = _source.enforcer
    _permissions.forget()


def _new_enforcer(
    conf: cfg.ConfigOpts, suppress_deprecation_warnings: bool, rules: Sequence[policy.RuleDefault]
) -> policy.Enforcer:
    enforcer = policy.Enforcer(conf)
    # The default of every rule has changed. Without this setting, oslo.policy would log a warning
    # for each rule, even if the operator has no policy file.
    enforcer.suppress_default_change_warnings = True
    enforcer.suppress_deprecation_warnings = suppress_deprecation_warnings
    enforcer.register_defaults(rules)
    enforcer.load_rules()
    rules_of = {
        name: set(permissions.references(enforcer, check)) for name, check in enforcer.rules.items()
    }
    # The evaluation of a cycle would be an endless recursion.
    graphlib.TopologicalSorter(rules_of).prepare()
    enforcer.use_conf = False
    for name, check in enforcer.rules.items():
        enforcer.rules[name] = policy_remote.replace(check)
    return enforcer


def problem() -> str | None:
    """Return why the policy files cannot be used, or None if their rules are in force."""
    _permissions.current()
    return None if _source is None or _source.problem is None else str(_source.problem)


def reset() -> None:
    """Remove the enforcer, so that `init` creates a new one."""
    global _enforcer, _source
    if _enforcer is not None:
        _enforcer.clear()
    _enforcer = _source = None
    _permissions.forget()


def set_rules(rules: policy.Rules, overwrite: bool = True) -> None:
    """Enforce the given rules. Later changes of the policy files have no effect.

    :param overwrite: remove the current rules first; otherwise, add the given rules to them
    """
    global _source
    assert _enforcer is not None, 'placement.policy.init() was not called'
    _source = None
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
    :raises PolicyServerUnavailable: the rule refers to a policy server, which did not respond
    :raises policy.PolicyNotRegistered: the rule does not exist
    """
    assert _enforcer is not None, 'placement.policy.init() was not called'
    memory = _permissions.current()
    # Another thread can replace the enforcer.
    enforcer = _enforcer
    permission = permissions.permission_of(memory, enforcer, context, action, target)
    if permission is not None and permission in memory.granted:
        return True
    try:
        # If do_raise is true, oslo.policy raises InvalidScope for a token of the wrong scope.
        granted = bool(enforcer.authorize(action, target, context, do_raise=do_raise))
    except (policy.PolicyNotAuthorized, policy.InvalidScope) as error:
        LOG.debug('%s', error)
        raise exception.PolicyNotAuthorized(action) from error
    except _EVALUATION_ERRORS as error:
        _log_faulty(action, error)
        if do_raise:
            raise exception.PolicyNotAuthorized(action) from error
        granted = False
    if granted and permission is not None:
        memory.granted.add(permission)
    return granted


def _log_faulty(action: str, error: Exception) -> None:
    LOG.error(
        'The policy rule %s cannot be evaluated, so it denies the request: %s: %s',
        action,
        type(error).__name__,
        error,
    )
