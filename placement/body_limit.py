"""The limit on the size of request bodies."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import webob.exc

from placement import util


class BodyLimit:
    """Responds with 413 if a body is larger than `[oslo_middleware] max_request_body_size`.

    The middleware of oslo.middleware is not used: its responses are not in the form of the
    service, and it reads a body without Content-Length whole before it looks at its size.
    """

    def __init__(self, application: util.Application, limit: int):
        self.application = application
        self.limit = limit

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        length = _announced_length(environ)
        if length is not None and length > self.limit:
            refusal = util.error_response(
                environ, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _sentence(self.limit)
            )
            return refusal(environ, start_response)
        if length is None and environ.get('wsgi.input_terminated'):
            environ['wsgi.input'] = _LimitedInput(environ['wsgi.input'], self.limit)
        return self.application(environ, start_response)


class _LimitedInput:
    """The input of a request without Content-Length; the first read beyond the limit fails."""

    __slots__ = ('_left', '_limit', '_source')

    def __init__(self, source: Any, limit: int):
        self._source = source
        self._limit = limit
        self._left = limit

    def read(self, size: int | None = -1) -> bytes:
        """Return at most `size` bytes, all if it is negative or None.

        :raises HTTPRequestEntityTooLarge: the body is larger than the limit
        """
        wanted = self._left + 1 if size is None or size < 0 else min(size, self._left + 1)
        parts = []
        while wanted and (part := self._source.read(wanted)):
            parts.append(part)
            wanted -= len(part)
            self._left -= len(part)
            if self._left < 0:
                raise webob.exc.HTTPRequestEntityTooLarge(_sentence(self._limit))
        return b''.join(parts)


def _announced_length(environ: util.Environ) -> int | None:
    """The Content-Length of a request; None if it has none that the server could follow."""
    try:
        length = int(environ.get('CONTENT_LENGTH') or 0)
    except ValueError:
        return None  # the handler responds with 400
    return length if length > 0 else None


def _sentence(limit: int) -> str:
    return f'The request body is larger than {limit} bytes.'
