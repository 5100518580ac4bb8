"""The id of a request, and its line in the log."""

from collections.abc import Iterable
import logging
import re
from typing import Any
from urllib.parse import quote

from oslo_context import context

from placement import microversion, util

LOG = logging.getLogger(__name__)

_HEADER = 'x-openstack-request-id'
_GLOBAL_ID = re.compile(r'req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}')

# Everything but the visible characters of ASCII; a double quote would end the field.
_UNPRINTABLE = re.compile(r'[^!#-~]+')


class RequestLog:
    """Gives each request an id, tells it to the client and writes the line.

    It also makes JSON the form of the answer when the client does not say which it wants.
    """

    def __init__(self, application: util.Application):
        self.application = application

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        request_id = context.generate_request_id()
        environ[util.ENVIRON_REQUEST_ID] = request_id
        # An id from outside links the logs of several services; it never replaces our own.
        sent = environ.get('HTTP_X_OPENSTACK_REQUEST_ID')
        global_id = sent if sent and _GLOBAL_ID.fullmatch(sent) else None
        if global_id:
            environ['openstack.global_request_id'] = global_id
        if environ.get('HTTP_ACCEPT', '*/*') in ('', '*/*'):
            environ['HTTP_ACCEPT'] = util.JSON
        # The log takes its ids from the context of the thread: without this one, lines written
        # before authentication would bear those of the thread's previous request.
        context.RequestContext(request_id=request_id, global_request_id=global_id)

        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug(
                'Starting request: %s "%s %s"',
                _quoted(environ.get('REMOTE_ADDR', '-')),
                _quoted(environ['REQUEST_METHOD']),
                _uri(environ),
            )

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            if LOG.isEnabledFor(logging.INFO):
                _write_line(environ, status, headers)
            return start_response(status, [*headers, (_HEADER, request_id)], *args)

        return self.application(environ, start)


def _write_line(environ: util.Environ, status: str, headers: list[tuple[str, str]]) -> None:
    length = next((value for name, value in headers if name.lower() == 'content-length'), '-')
    LOG.info(
        '%s "%s %s" status: %s len: %s microversion: %s',
        _quoted(environ.get('REMOTE_ADDR', '-')),
        _quoted(environ['REQUEST_METHOD']),
        _uri(environ),
        status.split(' ', 1)[0],
        length,
        environ.get(microversion.ENVIRON_KEY, '-'),
    )


def _uri(environ: util.Environ) -> str:
    """Mount prefix, path and query of a request, percent-encoded."""
    # PEP 3333: the texts are bytes decoded as latin-1.
    path = environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
    query = environ.get('QUERY_STRING')
    return quote(path, encoding='latin-1') + (f'?{_quoted(query)}' if query else '')


def _quoted(text: str) -> str:
    """A text of the client with all characters percent-encoded that could break its field.

    Percent-encoded text stays as it is.
    """
    return _UNPRINTABLE.sub(_percent_encoded, text)


def _percent_encoded(match: re.Match[str]) -> str:
    return quote(match[0], encoding='latin-1', errors='replace')
