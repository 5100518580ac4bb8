"""The kinds of failures. `placement.http.errors` maps a kind to a status."""

from placement import errors


class PlacementException(Exception):
    """The base of all exceptions; `str()` is a sentence for the client."""

    code = errors.UNDEFINED_CODE


class NotFound(PlacementException):
    """The object in the path of the request does not exist."""


class BadInput(PlacementException):
    """The query string or the body of the request is invalid."""


class Conflict(PlacementException):
    """The request is valid but conflicts with the stored state."""


class Forbidden(PlacementException):
    """The policy does not allow the request."""


class ServiceUnavailable(PlacementException):
    """The database is unavailable for the moment. The same request can succeed later."""
