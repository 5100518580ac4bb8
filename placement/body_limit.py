"""The limit on the size of request bodies."""

from collections.abc import Iterable
from typing import Any

from placement import exception
from placement.http import Application, Environ, StartResponse, errors

try:
    from uwsgi import chunked_read
except ImportError:  # the web server is not uWSGI
    chunked_read = None


class BodyLimit:
    """Rejects bodies of more than `[oslo_middleware] max_request_body_size` bytes.

    The response is 413 Request Entity Too Large. Placement does not use the corresponding
    middleware of oslo.middleware, for two reasons: its responses are not error documents of
    Placement, and it reads the whole of a body without Content-Length before it checks the size.
    """

    def __init__(self, application: Application, limit: int) -> None:
        self.application = application
        self.limit = limit

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        try:
            length = int(environ.get('CONTENT_LENGTH') or 0)
        except ValueError:
            length = 0  # the dispatcher returns 400 Bad Request
        if length > self.limit:
            refusal: Iterable[bytes] = errors.response(environ, exception.BodyTooLarge(self.limit))(
                environ, start_response
            )
            return refusal
        if chunked_read and _has_chunks(environ):
            environ |= {'wsgi.input': _Chunks(), 'wsgi.input_terminated': True}
        if length <= 0 and environ.get('wsgi.input_terminated'):
            environ['wsgi.input'] = _LimitedInput(environ['wsgi.input'], self.limit)
        return self.application(environ, start_response)


def _has_chunks(environ: Environ) -> bool:
    """Return whether uWSGI itself has received the body of a request in chunks."""
    chunked: bool = environ.get('HTTP_TRANSFER_ENCODING', '').lower() == 'chunked'
    return chunked and not environ.get('CONTENT_LENGTH')


class _Chunks:
    """The input of a body in chunks, which `wsgi.input` of uWSGI does not contain."""

    def read(self, _: int) -> bytes:
        """Return the next chunk, whatever its size, or nothing at the end."""
        chunk: bytes = chunked_read()
        return chunk


class _LimitedInput:
    """The input of a request without Content-Length. Reading beyond the limit raises an error."""

    __slots__ = ('_left', '_limit', '_source')

    def __init__(self, source: Any, limit: int) -> None:
        self._source = source
        self._limit = limit
        self._left = limit

    def read(self, size: int | None = -1) -> bytes:
        """Return at most `size` bytes, or all bytes if `size` is negative or None.

        :raises BodyTooLarge: the body is larger than the limit
        """
        # To detect that the body is too large, it is enough to read one byte beyond the limit.
        missing = self._left + 1 if size is None or size < 0 else min(size, self._left + 1)
        parts = []
        while missing and (part := self._source.read(missing)):
            parts.append(part)
            missing -= len(part)
            self._left -= len(part)
            if self._left < 0:
                raise exception.BodyTooLarge(self._limit)
        return b''.join(parts)
