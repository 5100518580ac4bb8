"""Who is asking: the context of a request."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_context import context

from placement import policy


class RequestContext(context.RequestContext):
    """The caller's identity, roles and scope, and the configuration of the service.

    It holds no database session: the functions of `placement.objects` open transactions of
    their own.
    """

    def __init__(self, *args: Any, config: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.config: cfg.ConfigOpts = config

    def can(self, action: str, target: Mapping[str, Any] | None = None, fatal: bool = True) -> bool:
        """Whether the caller may do something.

        :param action: name of a policy rule
        :param target: what it is done to; the caller's own project and user when left out
        :param fatal: raise PolicyNotAuthorized instead of giving False
        """
        if target is None:
            target = {'project_id': self.project_id, 'user_id': self.user_id}
        return policy.authorize(self, action, target, do_raise=fatal)
