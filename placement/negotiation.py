"""The layer that settles the microversion of a request."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import webob

from placement import microversion, util


class MicroversionMiddleware:
    """Puts the Version into the environment and names it in the response."""

    def __init__(self, application: util.Application):
        self.application = application

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        header = environ.get('HTTP_OPENSTACK_API_VERSION')
        try:
            version = microversion.parse_header(header) if header else microversion.MIN_VERSION
        except microversion.MalformedVersion as exc:
            refusal = util.error_response(environ, HTTPStatus.BAD_REQUEST, str(exc))
            return refusal(environ, start_response)
        except microversion.UnknownVersion as exc:
            return _not_acceptable(environ, exc)(environ, start_response)
        environ[microversion.ENVIRON_KEY] = version
        named = (
            (microversion.HEADER, f'{microversion.SERVICE_TYPE} {version}'),
            ('vary', microversion.HEADER),
        )

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            return start_response(status, [*headers, *named], *args)

        return self.application(environ, start)


def _not_acceptable(environ: util.Environ, exc: microversion.UnknownVersion) -> webob.Response:
    """Tells a client which versions it could have asked for."""
    known = {
        'max_version': str(microversion.MAX_VERSION),
        'min_version': str(microversion.MIN_VERSION),
    }
    return util.error_response(environ, HTTPStatus.NOT_ACCEPTABLE, str(exc), more=known)
