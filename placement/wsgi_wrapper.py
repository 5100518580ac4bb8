"""The only seam to WebOb's wsgify, and from exceptions to statuses."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import webob.dec
import webob.exc

from placement import exception, microversion, util

# The kind of a failure decides the status; what happened is in its sentence and its code.
STATUSES: tuple[tuple[type[exception.PlacementException], HTTPStatus], ...] = (
    (exception.NotFound, HTTPStatus.NOT_FOUND),
    (exception.BadInput, HTTPStatus.BAD_REQUEST),
    (exception.Conflict, HTTPStatus.CONFLICT),
    (exception.Forbidden, HTTPStatus.FORBIDDEN),
    (exception.ServiceUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)

# Seconds after which a client may try again.
_RETRY_AFTER = [('Retry-After', '1')]


class PlacementWsgify(webob.dec.wsgify):
    """Makes a WSGI application of a function from a Request to a Response.

    Failures of the domain, and HTTP errors that the edge raises, become error documents.
    Anything else passes: `fault_wrap` is for that.
    """

    def __call__(self, req: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(req, dict):
            return super().__call__(req, *args, **kwargs)
        return self._serve(req, *args)

    def _serve(self, environ: util.Environ, start_response: util.StartResponse) -> Iterable[bytes]:
        try:
            response = self.func(self.RequestClass(environ))
        except exception.PlacementException as exc:
            response = _document(environ, exc)
        except webob.exc.HTTPException as exc:
            response = util.error_response(
                environ, exc.status_int, exc.detail or exc.explanation, headers=_extra(exc)
            )
        return response(environ, start_response)


def _document(environ: util.Environ, exc: exception.PlacementException) -> webob.Response:
    if isinstance(exc, microversion.OutsideWindow):
        return util.error_response(environ, exc.status, str(exc))
    for kind, status in STATUSES:
        if isinstance(exc, kind):
            headers = _RETRY_AFTER if status is HTTPStatus.SERVICE_UNAVAILABLE else ()
            return util.error_response(environ, status, str(exc), exc.code, headers)
    raise exc


def _extra(exc: webob.exc.HTTPException) -> list[tuple[str, str]]:
    """Headers that belong to an HTTP error, for example Allow."""
    described = ('content-type', 'content-length')
    return [(name, value) for name, value in exc.headerlist if name.lower() not in described]
