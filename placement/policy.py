"""Who may do what: the policy enforcer of this process.

The rules and their defaults are in `placement.policies`. oslo.policy reads the operator's
file over them and reads it again when it changes.
"""

from collections.abc import Mapping, Sequence
import logging
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import policy

from placement import exception, policies

LOG = logging.getLogger(__name__)

_enforcer: policy.Enforcer | None = None


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
    enforcer = policy.Enforcer(conf)
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
    try:
        # With do_raise a scope that does not fit raises as well, and tells which fits.
        return bool(_enforcer.authorize(action, target, context, do_raise=do_raise))
    except (policy.PolicyNotAuthorized, policy.InvalidScope) as error:
        LOG.debug('%s', error)
        raise exception.PolicyNotAuthorized(action) from error
