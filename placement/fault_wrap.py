"""The middleware that returns 500 Internal Server Error for unexpected exceptions."""

from collections.abc import Iterable
import logging
import sys
from typing import Any

from placement.http import Application, Environ, StartResponse, errors

LOG = logging.getLogger(__name__)


class FaultWrapper:
    """Logs an unexpected exception with its traceback and returns an error document."""

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
        except Exception:
            # PEP 3333 requires exc_info only in a second call of start_response. If any call passes
            # exc_info, uWSGI does not send the body.
            exc_info = (sys.exc_info(),) if started else ()
            LOG.exception('Unexpected failure of a request')
            response = errors.unexpected(environ)
            start_response(response.status, response.headerlist, *exc_info)
            body: Iterable[bytes] = response.app_iter
            return body
