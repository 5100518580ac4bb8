"""The middleware that returns error documents: 500 Internal Server Error, if nothing else fits."""

from collections.abc import Iterable
import logging
import sys
from typing import Any

from placement import exception
from placement.http import Application, Environ, StartResponse, errors

LOG = logging.getLogger(__name__)


class FaultWrapper:
    """Returns an error document for an exception. Logs an unexpected one with its traceback."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        started = False

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            nonlocal started
            started = True
            return start_response(status, headers, *args)

        try:
            return self.application(environ, start)
        except Exception as exc:
            # PEP 3333 requires exc_info only in a second call of start_response. If any call passes
            # exc_info, uWSGI does not send the body.
            exc_info = (sys.exc_info(),) if started else ()
            if isinstance(exc, exception.PlacementException) and exc.status is not None:
                response = errors.response(environ, exc)
            else:
                LOG.exception('Unexpected failure of a request')
                response = errors.unexpected(environ)
            start_response(response.status, response.headerlist, *exc_info)
            body: Iterable[bytes] = response.app_iter
            return body
