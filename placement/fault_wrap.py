"""The middleware that returns error documents: 500 Internal Server Error, if nothing else fits."""

from collections.abc import Iterable
import logging
import sys
from typing import Any

from oslo_context import context

from placement import exception
from placement.http import Application, Environ, StartResponse, errors
from placement.http.request import ENVIRON_REQUEST_ID, HEADER_REQUEST_ID

LOG = logging.getLogger(__name__)


class FaultWrapper:
    """Returns an error document for an exception. Logs an unexpected one with its traceback.

    :param outermost: whether no further layer adds the request ID to the response
    """

    def __init__(self, application: Application, outermost: bool = False) -> None:
        self.application = application
        self._outermost = outermost

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
                request_id = _request_id(environ)
                LOG.exception('Unexpected failure of a request')
                response = errors.unexpected(environ)
                if self._outermost:
                    response.headers[HEADER_REQUEST_ID] = request_id
            start_response(response.status, response.headerlist, *exc_info)
            body: Iterable[bytes] = response.app_iter
            return body


def _request_id(environ: Environ) -> str:
    """Return the ID of a request, which may have failed before it had one."""
    if ENVIRON_REQUEST_ID not in environ:
        environ[ENVIRON_REQUEST_ID] = context.generate_request_id()
        # Without a new context, the log line would contain the ID of the thread's previous request.
        context.RequestContext(request_id=environ[ENVIRON_REQUEST_ID])
    request_id: str = environ[ENVIRON_REQUEST_ID]
    return request_id
