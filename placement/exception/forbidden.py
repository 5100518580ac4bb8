"""The policy does not allow the request."""

from placement.exception.kinds import Forbidden


class PolicyNotAuthorized(Forbidden):
    """The policy does not allow the caller to perform the action."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(f'Policy does not allow {action} to be performed.')
