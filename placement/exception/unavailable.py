"""The database is unavailable, or its setup is unsupported."""

from placement.exception.kinds import PlacementException, ServiceUnavailable


class DatabaseUnavailable(ServiceUnavailable):
    """The database is unreachable, full, busy or read-only for the moment."""

    def __init__(self) -> None:
        super().__init__('The database is unavailable at the moment. Please try again.')


class OutcomeUnknown(ServiceUnavailable):
    """The connection was lost during COMMIT."""

    def __init__(self) -> None:
        super().__init__(
            'The connection to the database was lost during the commit: the change may or may '
            'not have been made. Please check before you try again.'
        )


class UnsuitableDatabase(PlacementException):
    """The service cannot start: the setup of the database server is unsupported."""
