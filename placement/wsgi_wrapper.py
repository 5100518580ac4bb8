"""The decorator that turns a handler into a WSGI application."""

from collections.abc import Iterable
from typing import Any

import webob.dec
import webob.exc

from placement import exception
from placement.http import Environ, StartResponse, errors


class PlacementWsgify(webob.dec.wsgify):
    """Turns a function that takes a Request and returns a Response into a WSGI application.

    If the function raises an exception of `placement.exception` or an HTTP error of WebOb, the
    application returns an error document. Any other exception propagates to `fault_wrap`.
    """

    def __call__(self, req: Any, *args: Any, **kwargs: Any) -> Any:
        """Serve a request if `req` is a WSGI environment. Otherwise, call WebOb's wsgify."""
        if not isinstance(req, dict):
            return super().__call__(req, *args, **kwargs)
        return self._serve(req, *args)

    def _serve(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        try:
            response = self.func(self.RequestClass(environ))
        except exception.PlacementException as exc:
            response = errors.response(environ, exc)
        except webob.exc.HTTPException as exc:
            response = errors.webob_response(environ, exc)
        body: Iterable[bytes] = response(environ, start_response)
        return body
