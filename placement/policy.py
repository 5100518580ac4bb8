"""Who may do what: the policy enforcer of this process.

The rules and their defaults are in `placement.policies`. oslo.policy reads the operator's
file over them and reads it again when it changes.
"""

from collections.abc import Mapping, Sequence
import logging
import time
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import policy

from placement import exception, policies

LOG = logging.getLogger(__name__)

# For how long a grant is remembered, in seconds.
_REMEMBERED_FOR = 1.0


class _Enforcer(policy.Enforcer):
    """An enforcer that remembers what it granted a moment ago.

    To look for files and to evaluate a rule takes longer than all the rest of a request but
    its database work. Grants are remembered only while nothing but our own defaults decides,
    which look at the caller and the target alone, and only until it is time to look again
    whether the operator wrote a policy file. A file that is there is looked at each time.
    """

    def __init__(self, conf: cfg.ConfigOpts, remembers: bool):
        super().__init__(conf)
        self._remembers = remembers
        self._grants: set[tuple[Any, ...]] = set()
        self._forget_at = 0.0

    def remembers(self, case: tuple[Any, ...]) -> bool:
        """Whether this very case was granted just now."""
        if time.monotonic() >= self._forget_at:
            self._grants.clear()
            return False
        return case in self._grants and self._only_defaults()

    def remember(self, case: tuple[Any, ...]) -> None:
        """Remember a grant, if it may be remembered."""
        if not self._only_defaults():
            return
        if not self._grants:
            self._forget_at = time.monotonic() + _REMEMBERED_FOR
        self._grants.add(case)

    def _only_defaults(self) -> bool:
        return self._remembers and self.use_conf and not self.policy_path and not self.file_rules


_enforcer: _Enforcer | None = None


def init(
    conf: cfg.ConfigOpts,
    suppress_deprecation_warnings: bool = False,
    rules: Sequence[policy.RuleDefault] | None = None,
) -> None:
    """Make the enforcer. Does nothing when there is one already; see `reset`.

    :param conf: the configuration to read `[oslo_policy]` from, parsed
    :param suppress_deprecation_warnings: log nothing about rules of the operator's file
        that replace a deprecated rule
    :param rules: the rules to enforce instead of all those of the service
    """
    global _enforcer
    if _enforcer is not None:
        return
    enforcer = _Enforcer(conf, remembers=rules is None)
    # Every rule has a default that once was different, and an operator who did not write
    # a policy file can do nothing about a warning for each.
    enforcer.suppress_default_change_warnings = True
    enforcer.suppress_deprecation_warnings = suppress_deprecation_warnings
    enforcer.register_defaults(policies.list_rules() if rules is None else rules)
    enforcer.load_rules()
    _enforcer = enforcer


def reset() -> None:
    """Forget the enforcer, so that `init` makes a new one."""
    global _enforcer
    if _enforcer is not None:
        _enforcer.clear()
        _enforcer = None


def set_rules(rules: policy.Rules, overwrite: bool = True) -> None:
    """Enforce the given rules instead of, or beside, those that are enforced now."""
    assert _enforcer is not None, 'placement.policy.init() was not called'
    _enforcer.set_rules(rules, overwrite=overwrite)


def get_enforcer() -> policy.Enforcer:
    """Give the enforcer to the command line tools of oslo.policy.

    They look it up by the entry point `oslo.policy.enforcer` and work on the process-wide
    configuration. It is parsed here, for the project `placement`, from the files that the
    tool was told on its command line or else from where the service looks.
    """
    conf = cfg.CONF
    if not _read_files(conf):
        conf([], project='placement')
    init(conf)
    assert _enforcer is not None
    return _enforcer


def _read_files(conf: cfg.ConfigOpts) -> bool:
    try:
        return bool(conf.config_file or conf.config_dir)
    except cfg.NoSuchOptError:  # not parsed yet
        return False


def authorize(
    context: oslo_context.RequestContext,
    action: str,
    target: Mapping[str, Any],
    do_raise: bool = True,
) -> bool:
    """Tell whether the caller may do something.

    :param context: the context of the request: who is calling, with which roles and scope
    :param action: the name of a rule
    :param target: what it is done to; rules compare its items with those of the caller
    :param do_raise: raise instead of giving False
    :raises PolicyNotAuthorized: the rule, or the scope of the token, does not allow it
    :raises policy.PolicyNotRegistered: there is no such rule
    """
    assert _enforcer is not None, 'placement.policy.init() was not called'
    case = _case(context, action, target)
    if _enforcer.remembers(case):
        return True
    try:
        # With do_raise a scope that does not fit raises as well, and tells which fits.
        allowed = bool(_enforcer.authorize(action, target, context, do_raise=do_raise))
    except (policy.PolicyNotAuthorized, policy.InvalidScope) as error:
        LOG.debug('%s', error)
        raise exception.PolicyNotAuthorized(action) from error
    if allowed:
        _enforcer.remember(case)
    return allowed


def _case(
    context: oslo_context.RequestContext, action: str, target: Mapping[str, Any]
) -> tuple[Any, ...]:
    """All that the default rules look at."""
    return (
        action,
        tuple(context.roles),
        context.project_id,
        context.user_id,
        context.domain_id,
        context.system_scope,
        tuple(target.items()),
    )
