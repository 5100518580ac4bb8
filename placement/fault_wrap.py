"""The last resort: a failure that nobody foresaw becomes a 500."""

from collections.abc import Iterable
from http import HTTPStatus
import logging
import sys
from typing import Any

from placement import util

LOG = logging.getLogger(__name__)


class FaultWrapper:
    """Turns an unexpected exception into a normal error document.

    The client learns that something failed and the id of its request, nothing else: the
    traceback, which may hold texts of SQL and their parameters, goes to the log.
    """

    def __init__(self, application: util.Application):
        self.application = application

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        started = False

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            nonlocal started
            started = True
            return start_response(status, headers, *args)

        try:
            return self.application(environ, start)
        except Exception:
            # PEP 3333 requires exc_info for a second call of start_response only. uWSGI sends no
            # body after any call that has it.
            exc_info = (sys.exc_info(),) if started else ()
            LOG.exception('Unexpected failure of a request')
            response = util.error_response(
                environ,
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f'Something failed unexpectedly. The request has the id '
                f'{environ.get(util.ENVIRON_REQUEST_ID, "-")}.',
            )
            start_response(response.status, response.headerlist, *exc_info)
            return response.app_iter
