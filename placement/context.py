"""The request context: identity, roles and scope of the caller."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_context import context

from placement import policy


class RequestContext(context.RequestContext):
    """The caller's identity, roles and scope, and the configuration of the service.

    It has no database session: the functions that handlers call open their own transactions.
    """

    def __init__(self, *args: Any, config: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config: cfg.ConfigOpts = config

    def can(self, action: str, target: Mapping[str, Any] | None = None, fatal: bool = True) -> bool:
        """Return whether the policy allows the caller to perform an action.

        :param action: name of a policy rule
        :param target: attributes of the object on which the caller performs the action; by default,
            the caller's own project and user
        :param fatal: raise an exception instead of returning False
        :raises PolicyNotAuthorized: the policy does not allow the action, and `fatal` is true
        """
        if target is None:
            target = {'project_id': self.project_id, 'user_id': self.user_id}
        return policy.authorize(self, action, target, do_raise=fatal)
