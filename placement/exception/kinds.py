"""The kinds of failures. `placement.http.errors` maps each kind to an HTTP status."""

from placement import errors


class PlacementException(Exception):
    """The base class of all exceptions. `str()` returns the message for the client."""

    code = errors.UNDEFINED_CODE


class NotFound(PlacementException):
    """The path of the request, or the object that it identifies, does not exist."""


class BadInput(PlacementException):
    """The query string or the body of the request is invalid."""


class Conflict(PlacementException):
    """The request is valid but conflicts with the stored state."""


class Forbidden(PlacementException):
    """The policy does not allow the request."""


class ServiceUnavailable(PlacementException):
    """A required service, for example the database, is temporarily unavailable.

    The client can retry the request later.
    """
