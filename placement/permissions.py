"""Remembers for a second which permissions the policy granted.

PERF: oslo.policy looks for the policy file and inspects the signature of each check whenever a rule
is evaluated, which took 20 % of a read of one provider (2026-11).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import logging
import operator
import time
from typing import Any

from oslo_context import context as oslo_context
from oslo_policy import policy

# oslo.policy logs each evaluation of a rule with this logger, at the level DEBUG.
_EVALUATIONS = logging.getLogger(policy.__name__)

REMEMBERED_SECONDS = 1.0
# Callers choose a part of what is remembered, for example the project in the query of GET /usages.
MAX_REMEMBERED = 1000

# The classes of the conditions that oslo.policy evaluates itself. It does not publish their names.
_ROLE, _COMPARISON = (type(policy.RuleDefault('', text).check) for text in ('role:x', 'x:y'))
_CONSTANTS = tuple(type(policy.RuleDefault('', text).check) for text in ('@', '!'))


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes on which the decision of a rule depends.

    :ivar of_caller: a function that returns their values for a caller
    :ivar of_target: whether the decision also depends on the target
    """

    of_caller: Callable[[Any], tuple[Any, ...]]
    of_target: bool


class Memory:
    """What is remembered for a second.

    :ivar granted: the permissions that were granted
    :ivar attributes: enforcer and rule -> the attributes on which the decision depends
    """

    __slots__ = ('attributes', 'granted')

    def __init__(self) -> None:
        self.granted: set[Hashable] = set()
        self.attributes: dict[tuple[policy.Enforcer, str], Attributes] = {}


class Permissions:
    """The permissions that were granted within the last second.

    :param refresh: called with the time of the monotonic clock when permissions have been forgotten
    """

    def __init__(self, refresh: Callable[[float], None]) -> None:
        self._refresh = refresh
        self._memory = Memory()
        self._expiry = 0.0

    def current(self) -> Memory:
        """Return what is remembered.

        A caller adds a permission to the memory that this method returned before the rule was
        evaluated. If the permissions are forgotten meanwhile, the addition has no effect.
        """
        now = time.monotonic()
        if now >= self._expiry or len(self._memory.granted) >= MAX_REMEMBERED:
            self._memory, self._expiry = Memory(), now + REMEMBERED_SECONDS
            self._refresh(now)
        return self._memory

    def forget(self) -> None:
        """Forget all permissions."""
        self._memory, self._expiry = Memory(), 0.0


def permission_of(
    memory: Memory,
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
    rule = enforcer, action
    attributes = memory.attributes.get(rule)
    if attributes is None:
        attributes = memory.attributes[rule] = decisive_attributes(enforcer, action)
    values = tuple([tuple(v) if isinstance(v, list) else v for v in attributes.of_caller(context)])
    permission = (*rule, values, tuple(target.items()) if attributes.of_target else ())
    try:
        hash(permission)
    except TypeError:
        return None
    return permission


def decisive_attributes(enforcer: policy.Enforcer, action: str) -> Attributes:
    """Return the attributes on which the decision of a rule depends.

    PERF: the services of a cloud have the same roles, but the users of their tokens differ. If each
    attribute counted, the decisions for 1,000 users would not fit into the memory (2026-11).
    """
    known = set(oslo_context.RequestContext(overwrite=False).to_policy_values())
    # oslo.policy derives the scope of a token from these two.
    of_caller, of_target = {'system_scope', 'domain_id'}, False
    for check in _conditions(enforcer, action):
        kind: Any = type(check)
        if kind in _CONSTANTS:
            continue
        if kind is _ROLE:
            of_caller.add('roles')
        elif kind is _COMPARISON:
            of_caller.add(check.kind.split('.')[0])
        else:
            # The condition may use all attributes. For example, a policy server receives them.
            of_caller, of_target = known, True
            break
        of_target = of_target or '%' in check.match
    # An attribute that no caller has is a constant.
    return Attributes(operator.attrgetter(*sorted(of_caller & known)), of_target)


def _conditions(enforcer: policy.Enforcer, action: str) -> Iterator[Any]:
    """Yield the conditions of a rule, and those of the rules to which it refers."""
    pending: list[Any] = [policy.RuleCheck('rule', action)]
    visited = set()
    while pending:
        check = pending.pop()
        if not isinstance(check, policy.RuleCheck):
            parts = _parts(check)
            pending += parts
            if not parts:
                yield check
        elif check.match not in visited:
            visited.add(check.match)
            pending += [
                enforcer.rules[name]
                for name in references(enforcer, check)
                if name in enforcer.rules
            ]


def references(enforcer: policy.Enforcer, check: Any) -> Iterator[str]:
    """Yield the rules to which an expression refers. An unknown rule is the default rule."""
    if isinstance(check, policy.RuleCheck):
        yield check.match if check.match in enforcer.rules else str(enforcer.default_rule)
    for part in _parts(check):
        yield from references(enforcer, part)


def _parts(check: Any) -> Sequence[Any]:
    """Return the expressions that `not`, `and` or `or` combines."""
    return [check.rule] if isinstance(check, policy.NotCheck) else getattr(check, 'rules', ())
