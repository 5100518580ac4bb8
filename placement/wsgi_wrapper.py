"""Makes WSGI applications of handlers; the only use of WebOb's wsgify."""

from collections.abc import Iterable
from typing import Any

import webob.dec
import webob.exc

from placement import exception
from placement.http import Environ, StartResponse, errors


class PlacementWsgify(webob.dec.wsgify):
    """Makes a WSGI application of a function from a Request to a Response.

    An exception of `placement.exception`, or an HTTP error of WebOb, becomes an error document.
    Any other exception propagates to `fault_wrap`.
    """

    def __call__(self, req: Any, *args: Any, **kwargs: Any) -> Any:
        """Serve a request if called with a WSGI environment, else do what wsgify does."""
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
