"""Turn a failure into a response with a status, an error code and an error document.

Handlers raise exceptions, which contain the status, the code and the message
(`placement.exception`). Middleware cannot raise them, so it passes an exception to `response`.
"""

from collections.abc import Iterable, Mapping
import html
from http import HTTPStatus
from typing import Any

import orjson
import webob
import webob.exc

from placement import errors, exception, microversion
from placement.http import JSON, Environ
from placement.http.reply import PHRASES, STATUS_LINES
from placement.http.request import ENVIRON_REQUEST_ID, acceptable

Headers = Iterable[tuple[str, str]]

# Status -> the text before the sentence in the `detail` of an error document. It ends with a blank
# line, at which clients divide the detail. For all other statuses, the detail is the sentence.
_EXPLANATIONS: dict[int, str] = {
    status: f'{kind.explanation}\n\n '
    for status, kind in webob.exc.status_map.items()
    if 400 <= status < 500
    and status not in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_ACCEPTABLE)
}

# The number of seconds after which a client may retry the request.
_RETRY_AFTER = ('Retry-After', '1')

_UNAUTHORIZED = 'This request requires a valid token in the X-Auth-Token header.'


# Failures -----------------------------------------------------------------------


def response(environ: Environ, exc: exception.PlacementException) -> webob.Response:
    """Return the response to a request that failed with an exception.

    :raises PlacementException: `exc` itself, if its class has no status
    """
    if exc.status is None:
        raise exc
    return error_response(environ, exc.status, str(exc), exc.code, _headers(exc), _members(exc))


def _headers(exc: exception.PlacementException) -> Headers:
    """Return the headers of an error response, except Content-Type."""
    if isinstance(exc, exception.ServiceUnavailable):
        return (_RETRY_AFTER,)
    if isinstance(exc, exception.MethodNotAllowed) and exc.allowed:
        return (('allow', exc.allowed),)
    return ()


def _members(exc: exception.PlacementException) -> Mapping[str, str]:
    """Return the members that the error document has only for this class of exception."""
    if isinstance(exc, exception.UnsupportedVersion):
        return {
            'max_version': str(microversion.MAX_VERSION),
            'min_version': str(microversion.MIN_VERSION),
        }
    return {}


def webob_response(environ: Environ, exc: webob.exc.HTTPException) -> webob.Response:
    """Return the response to a request whose handler raised an HTTP exception of WebOb."""
    described = ('content-type', 'content-length')
    headers = [pair for pair in exc.headerlist if pair[0].lower() not in described]
    return error_response(environ, exc.status_int, exc.detail or exc.explanation, headers=headers)


def unexpected(environ: Environ) -> webob.Response:
    """Return the response to a request that failed with an unexpected exception.

    The response contains the request ID but not the cause, because SQL statements and their
    parameters are confidential.
    """
    return error_response(
        environ,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f'The request failed unexpectedly. Request ID: {environ.get(ENVIRON_REQUEST_ID, "-")}.',
    )


def unauthorized(environ: Environ) -> webob.Response:
    """Return the response to a request that is not authenticated.

    The document differs from other error documents: for this status, clients expect an object
    with the members `message`, `code` and `title`.
    """
    status = HTTPStatus.UNAUTHORIZED
    document = {
        'message': _UNAUTHORIZED,
        'code': STATUS_LINES[status],
        'title': PHRASES[status],
    }
    return failure(environ, status, _UNAUTHORIZED, document)


# Documents ----------------------------------------------------------------------


def error_response(
    environ: Environ,
    status: int,
    sentence: str,
    code: str = errors.UNDEFINED_CODE,
    headers: Headers = (),
    more: Mapping[str, Any] | None = None,
) -> webob.Response:
    """Return an error response in the media type that the Accept header of the request prefers.

    In JSON, the detail is the sentence after the general explanation of the status.

    :param sentence: the message for the client
    :param code: the error code, which documents contain since microversion 1.23
    :param more: additional members of the JSON document
    """
    detail = _EXPLANATIONS.get(status, '') + sentence
    error: dict[str, Any] = {'status': status, 'title': PHRASES[status], 'detail': detail}
    if environ.get(microversion.ENVIRON_KEY, ()) >= microversion.ERROR_CODES:
        error['code'] = code
    if ENVIRON_REQUEST_ID in environ:
        error['request_id'] = environ[ENVIRON_REQUEST_ID]
    error.update(more or {})
    return failure(environ, status, sentence, {'errors': [error]}, headers)


def failure(
    environ: Environ,
    status: int,
    sentence: str,
    document: Mapping[str, Any],
    headers: Headers = (),
) -> webob.Response:
    """Return a response that contains `document` as JSON, or `sentence` as HTML or plain text."""
    media_type = _error_media_type(environ)
    if environ.get('REQUEST_METHOD') == 'HEAD':
        body = b''
    elif media_type == JSON:
        body = orjson.dumps(document)
    else:
        body = _page(media_type, STATUS_LINES[status], sentence).encode()
    charset = '' if media_type == JSON else '; charset=UTF-8'
    return webob.Response(
        body=body,
        status=STATUS_LINES[status],
        headerlist=[('Content-Type', media_type + charset), *headers],
    )


def _page(media_type: str, heading: str, sentence: str) -> str:
    if media_type != 'text/html':
        return f'{heading}\n\n{sentence}\n'
    return (
        f'<html>\n <head><title>{heading}</title></head>\n'
        f' <body>\n  <h1>{heading}</h1>\n  <p>{html.escape(sentence)}</p>\n </body>\n'
        '</html>\n'
    )


def _error_media_type(environ: Environ) -> str:
    if environ.get('REQUEST_METHOD') == 'HEAD':
        # No route supports HEAD, and a response to HEAD has no body. Clients have always received
        # this media type.
        return 'text/html'
    accept = environ.get('HTTP_ACCEPT')
    if not accept or accept in (JSON, '*/*'):
        return JSON
    admitted = acceptable(accept, ('text/html', JSON))
    return admitted[0] if admitted else 'text/plain'
