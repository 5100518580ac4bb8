"""Checks of policy rules that send a request to a policy server (`http:` and `https:`).

oslo.policy sends the requests. Placement quotes the values that become a part of the URL, and
returns 503 Service Unavailable if the server does not respond.
"""

from collections.abc import Mapping, MutableMapping
import logging
import re
from typing import Any
from urllib import parse

from oslo_policy import policy
import requests

from placement import exception

LOG = logging.getLogger(__name__)

_KINDS = ('http', 'https')
# The host and the port, without the user and the password, in `//user:password@host:port/path`.
_HOST = re.compile(r'//(?:[^/?#]*@)?([^/?#]*).*', re.DOTALL)


class RemoteCheck(policy.Check):
    """A check that a policy server makes.

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
        try:
            address = self.match % _quoted(target)
        except KeyError:
            return False
        check = self._kind_of_check(self.kind, address.replace('%', '%%'))
        try:
            return check(target, creds, enforcer, current_rule)
        except (requests.RequestException, OSError, RuntimeError, ValueError) as error:
            # requests raises a ValueError for a charset or a redirect that it cannot interpret.
            LOG.warning(
                'The policy server %s://%s is unavailable: %s',
                self.kind,
                _HOST.sub(r'\1', address),
                _reason(error),
            )
            raise exception.PolicyServerUnavailable from error


def _quoted(target: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that can be a part of a URL without changing its other parts.

    Quoting has no effect on `.` and `..`: they remove a segment of the path. An empty value would
    also address another path.
    """
    return {
        name: parse.quote(str(value), safe='', errors='surrogatepass')
        for name, value in target.items()
        if str(value).strip('.')
    }


def _reason(error: BaseException) -> str:
    """Return the original failure. A message of requests contains the URL, which can be secret."""
    while error.__context__ is not None:
        error = error.__context__
    if isinstance(error, requests.RequestException):
        return type(error).__name__
    return f'{type(error).__name__}: {error}'


def replace(check: Any) -> Any:
    """Return an expression whose checks by policy servers are `RemoteCheck`."""
    if isinstance(check, (policy.AndCheck, policy.OrCheck)):
        check.rules = [replace(part) for part in check.rules]
    elif isinstance(check, policy.NotCheck):
        check.rule = replace(check.rule)
    elif isinstance(check, policy.Check) and check.kind in _KINDS:
        return RemoteCheck(check)
    return check
