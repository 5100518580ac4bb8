"""A required service is unavailable, or the configuration of the database is unsupported."""

from placement.exception.kinds import PlacementException, ServiceUnavailable


class DatabaseUnavailable(ServiceUnavailable):
    """The database is temporarily unreachable, full, busy or read-only."""

    def __init__(self) -> None:
        super().__init__('The database is unavailable at the moment. Please try again.')


class OutcomeUnknown(ServiceUnavailable):
    """The connection was lost during COMMIT, so the outcome of the transaction is unknown."""

    def __init__(self) -> None:
        super().__init__(
            'The connection to the database was lost during the commit, so the change may or may '
            'not have been made. Please check the result before you try again.'
        )


class IdentityUnavailable(ServiceUnavailable):
    """The identity service, Keystone, did not validate a token because it is unreachable."""

    def __init__(self) -> None:
        super().__init__('The identity service is unavailable at the moment. Please try again.')


class PolicyServerUnavailable(ServiceUnavailable):
    """A policy rule refers to a remote server, and this server did not respond."""

    def __init__(self) -> None:
        super().__init__('The policy server is unavailable at the moment. Please try again.')


class MetricsUnavailable(PlacementException):
    """The service cannot start, because metrics are enabled but cannot be recorded."""


class UnsuitableDatabase(PlacementException):
    """The service cannot start, because the configuration of the database is unsupported."""


class InvalidPolicyFile(PlacementException):
    """A policy file cannot be used.

    The service cannot start with this file, or it keeps the rules that it has.

    :param path: the policy file
    :param reason: the line, if it is known, and what is wrong
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f'The policy file {path} is not usable: {reason}. Correct it; placement-status '
            'preflight checks it.'
        )
        self.reason = reason
