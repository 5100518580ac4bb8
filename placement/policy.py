"""The policy enforcer of this process, and the permissions that it granted within the last second.

`placement.policies` contains the rules and their defaults. The operator's policy files can override
them. If the files have changed, their rules replace the current ones within a second. If the
changed files are not usable, the current rules stay in force.
"""

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
import functools
import itertools
import logging
import operator
import pathlib
import re
import threading
import time
from typing import Any
from urllib import parse

import cachetools
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from placement import exception, policies, telemetry

LOG = logging.getLogger(__name__)

# What oslo.policy and PyYAML raise for mistakes in files and in expressions. For example, an
# expression contains an incomplete `%(project_id)`, or rules refer to each other in a cycle.
_MISTAKES = (
    AttributeError,
    LookupError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    cfg.Error,
)

_SECONDS = 1.0
# PERF: an evaluation takes 30 times as long as a look at this memory, because oslo.policy inspects
# the signature of each check (2026-11).
_GRANTED: cachetools.TTLCache[Hashable, bool] = cachetools.TTLCache(maxsize=1000, ttl=_SECONDS)
_LOCK = threading.Lock()

# The classes of checks that use only what their text names. oslo.policy does not publish them.
_TEXTUAL = tuple(
    type(policy.RuleDefault('', text).check) for text in ('@', '!', 'role:x', 'rule:x', 'x:y')
)
_VALUE = re.compile(r'%\(([\w.]*)\)s')


def files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the paths of the existing files in the order in which oslo.policy applies them.

    :raises OSError: a policy directory cannot be read
    """
    options = conf.oslo_policy
    found = [path for path in [conf.find_file(options.policy_file)] if path]
    for directory in filter(None, map(conf.find_file, options.policy_dirs)):
        # oslo.policy ignores hidden files and subdirectories.
        entries = sorted(pathlib.Path(directory).iterdir())
        found += [str(path) for path in entries if path.name[0] != '.' and not path.is_dir()]
    return found


def read(path: str) -> dict[str, Any]:
    """Return the names and the expressions of the rules in a policy file.

    :raises exception.InvalidPolicyFile: the file is not readable, or not a mapping in YAML
    """
    try:
        rules: Any = policy.parse_file_contents(pathlib.Path(path).read_text())
    except (OSError, *_MISTAKES) as error:
        raise exception.InvalidPolicyFile(path, ' '.join(str(error).split())) from error
    if not isinstance(rules, dict):
        raise exception.InvalidPolicyFile(path, 'it does not map names of rules to texts')
    for name, text in rules.items():
        # oslo.policy would permit everything if the expression is `false`.
        if not isinstance(name, str) or not _is_expression(text):
            reason = f'it does not map names of rules to texts, for example the rule {name}'
            raise exception.InvalidPolicyFile(path, reason)
    return rules


def _is_expression(value: Any) -> bool:
    """Return whether the value is a text, nothing, or a list of lists, the old form."""
    if isinstance(value, list):
        return all(map(_is_expression, value))
    return value is None or isinstance(value, str)


def _state(conf: cfg.ConfigOpts) -> tuple[str | None, Any]:
    """Return the path of the policy file, and a value that changes with each change of a file."""
    path = conf.find_file(conf.oslo_policy.policy_file)
    try:
        statuses = [(one, pathlib.Path(one).stat()) for one in files(conf)]
    except OSError as error:
        return path, str(error)
    return path, [(one, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for one, s in statuses]


class _Rules:
    """The rules in force, and the attributes of callers and targets on which they depend.

    PERF: the services of a cloud have the same roles, but the users of their tokens differ. If each
    attribute counted, the memory would contain few of the decisions for 1,000 users (2026-11).

    :ivar enforcer: does not read the policy files
    """

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self.enforcer = enforcer
        # oslo.policy derives the scope of a token from the last two.
        self._names, self._values = {'roles', 'domain_id', 'system_scope'}, set[str]()
        # Whether a check may use everything. For example, a policy server receives all attributes.
        self._uses_all = False
        for check in itertools.chain.from_iterable(map(_parts, enforcer.rules.values())):
            text = str(check)
            self._names.add(text.partition(':')[0].partition('.')[0])
            self._values.update(_VALUE.findall(text))
            self._uses_all |= type(check) not in _TEXTUAL or '%' in _VALUE.sub('', text)

    @functools.cached_property
    def _attributes_of(self) -> Callable[[oslo_context.RequestContext], Iterable[Any]]:
        # In a request, this context does not replace that of the request in log lines.
        known = set(oslo_context.RequestContext(overwrite=False).to_policy_values())
        return operator.attrgetter(*known if self._uses_all else known & self._names)

    def permission(
        self, context: oslo_context.RequestContext, action: str, target: Mapping[str, Any]
    ) -> Hashable:
        """Return everything on which a decision depends."""
        caller = [tuple(v) if isinstance(v, list) else v for v in self._attributes_of(context)]
        if not self._uses_all:
            target = {name: target[name] for name in self._values if name in target}
        return self, action, *caller, str(target)


def _parts(check: Any) -> Iterator[Any]:
    """Yield the checks that an expression combines with `not`, `and`, or `or`."""
    if isinstance(check, policy.NotCheck):
        yield from _parts(check.rule)
    elif isinstance(check, (policy.AndCheck, policy.OrCheck)):
        yield from itertools.chain.from_iterable(map(_parts, check.rules))
    else:
        yield check


class _Policy:
    """The policy files, and the rules in them.

    :ivar rules: the rules of the last files that could be used
    :ivar problem: why the current files cannot be used, or None
    :ivar is_fixed: whether changes of the files have no effect
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        suppress_deprecation_warnings: bool,
        defaults: Sequence[policy.RuleDefault],
    ) -> None:
        """:raises exception.InvalidPolicyFile: a policy file cannot be used"""
        self._conf = conf
        self._suppress = suppress_deprecation_warnings
        self._defaults = defaults
        self._lock = threading.Lock()
        self._next_look = time.monotonic() + _SECONDS
        self._state = _state(conf)
        self.is_fixed = False
        self.problem: exception.InvalidPolicyFile | None = None
        self.rules = self._load()

    def refresh(self) -> None:
        """Once a second, replace the rules if the files have changed and can be used."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _SECONDS
        with self._lock:
            state = _state(self._conf)
            if self.is_fixed or state == self._state:
                return
            try:
                rules, self.problem = self._load(), None
            except exception.InvalidPolicyFile as problem:
                rules, self.problem = self.rules, problem
            if _state(self._conf) != state:
                return  # A file changed after it was checked. The next refresh reads it again.
            path_before = self._state[0]
            self._state, self.rules = state, rules
            telemetry.UNUSABLE_POLICY.set(self.problem is not None)
            if self.problem is not None:
                LOG.error('The previous policy rules stay in force. %s', self.problem)
            elif path_before and not state[0]:
                LOG.warning('The policy file %s was removed. The default rules apply.', path_before)
            else:
                LOG.info('The policy files have changed, and the new rules are in force.')

    def _load(self) -> _Rules:
        """Return the rules in the files.

        :raises exception.InvalidPolicyFile: a policy file cannot be used
        """
        try:
            # oslo.policy uses the default rules in place of some files that cannot be read.
            for path in files(self._conf):
                read(path)
            enforcer = policy.Enforcer(self._conf)
            # The default of every rule has changed. Without this setting, oslo.policy would log a
            # warning for each rule, even if the operator has no policy file.
            enforcer.suppress_default_change_warnings = True
            enforcer.suppress_deprecation_warnings = self._suppress
            enforcer.register_defaults(self._defaults)
            enforcer.load_rules()
        except (OSError, *_MISTAKES) as error:
            path = getattr(error, 'filename', None) or self._conf.oslo_policy.policy_file
            raise exception.InvalidPolicyFile(path, f'{type(error).__name__}: {error}') from error
        enforcer.use_conf = False
        for name, check in enforcer.rules.items():
            enforcer.rules[name] = _with_quoting(check)
        return _Rules(enforcer)


class _RemoteCheck(policy.Check):
    """A check that a policy server makes. Values cannot change other parts of its URL.

    :param check: the check of oslo.policy, which inserts values into the URL without quoting them
    """

    def __init__(self, check: policy.Check) -> None:
        super().__init__(check.kind, check.match)
        self._kind_of_check = type(check)

    def __call__(
        self,
        target: Mapping[str, Any],
        creds: MutableMapping[str, Any],
        enforcer: policy.Enforcer,
        current_rule: str | None = None,
    ) -> bool:
        """Return whether the policy server grants the permission.

        :raises exception.PolicyServerUnavailable: the server did not respond, or its response
            cannot be interpreted
        """
        # Quoting has no effect on `.` and `..`: they remove a segment of the path. An empty value
        # would also address another path.
        quoted = {
            name: parse.quote(str(value), safe='', errors='surrogatepass')
            for name, value in target.items()
            if str(value).strip('.')
        }
        try:
            address = self.match % quoted
        except KeyError:
            return False
        check = self._kind_of_check(self.kind, address.replace('%', '%%'))
        try:
            return check(target, creds, enforcer, current_rule)
        except (OSError, RuntimeError, ValueError) as error:
            # requests raises a ValueError for a charset or a redirect that it cannot interpret. Its
            # messages contain the URL, which can be secret.
            reason = error if isinstance(error, RuntimeError) else type(error).__name__
            LOG.warning('The policy server of the rule %s is unavailable: %s', current_rule, reason)
            raise exception.PolicyServerUnavailable from error


def _with_quoting(check: Any) -> Any:
    """Return an expression whose checks by policy servers are `_RemoteCheck`."""
    if isinstance(check, (policy.AndCheck, policy.OrCheck)):
        check.rules = [_with_quoting(part) for part in check.rules]
    elif isinstance(check, policy.NotCheck):
        check.rule = _with_quoting(check.rule)
    elif isinstance(check, policy.Check) and check.kind in ('http', 'https'):
        return _RemoteCheck(check)
    return check


_policy: _Policy | None = None


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
    global _policy
    if _policy is not None:
        return
    # The tools of oslo.policy have not registered the options. This registers them only.
    policy_opts.set_defaults(conf)
    defaults = policies.list_rules() if rules is None else rules
    _policy = _Policy(conf, suppress_deprecation_warnings, defaults)


def _current() -> _Policy:
    assert _policy is not None, 'placement.policy.init() was not called'
    return _policy


def problem() -> str | None:
    """Return why the policy files cannot be used, or None if their rules are in force."""
    if _policy is None:
        return None
    _policy.refresh()
    return None if _policy.problem is None else str(_policy.problem)


def reset() -> None:
    """Remove the enforcer, so that `init` creates a new one."""
    global _policy
    _policy = None


def set_rules(rules: policy.Rules, overwrite: bool = True) -> None:
    """Enforce the given rules. Later changes of the policy files have no effect.

    :param overwrite: remove the current rules first; otherwise, add the given rules to them
    """
    current = _current()
    current.is_fixed = True
    current.rules.enforcer.set_rules(rules, overwrite=overwrite)
    current.rules = _Rules(current.rules.enforcer)


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
    return _current().rules.enforcer


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
    current = _current()
    current.refresh()
    rules = current.rules
    permission = rules.permission(context, action, target)
    with _LOCK:
        if permission in _GRANTED:
            return True
    try:
        # If do_raise is true, oslo.policy raises InvalidScope for a token of the wrong scope.
        granted = bool(rules.enforcer.authorize(action, target, context, do_raise=do_raise))
    except (policy.PolicyNotAuthorized, policy.InvalidScope) as error:
        LOG.debug('%s', error)
        raise exception.PolicyNotAuthorized(action, _default(rules.enforcer, action)) from error
    except _MISTAKES as error:
        LOG.error(  # noqa: TRY400 - a mistake in a file
            'The policy rule %s cannot be evaluated, so it denies the request: %s: %s',
            action,
            type(error).__name__,
            error,
        )
        if do_raise:
            raise exception.PolicyNotAuthorized(action, _default(rules.enforcer, action)) from error
        granted = False
    if granted:
        with _LOCK:
            _GRANTED[permission] = True
    return granted


def _default(enforcer: policy.Enforcer, action: str) -> str:
    """Return the expression of the default of a rule; for `rule:NAME`, that of the other rule."""
    defaults = enforcer.registered_rules
    name = defaults[action].check_str.removeprefix('rule:')
    expression: str = defaults[name if name in defaults else action].check_str
    return expression
