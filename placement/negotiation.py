"""The middleware that determines the microversion of a request."""

from collections.abc import Iterable
from typing import Any

from placement import exception, microversion
from placement.http import Application, Environ, StartResponse, errors


class MicroversionMiddleware:
    """Stores the microversion in the WSGI environment and adds version headers to the response."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        header = environ.get('HTTP_OPENSTACK_API_VERSION')
        try:
            version = microversion.parse_header(header) if header else microversion.MIN_VERSION
        except (exception.MalformedVersion, exception.UnsupportedVersion) as exc:
            refusal: Iterable[bytes] = errors.response(environ, exc)(environ, start_response)
            return refusal
        environ[microversion.ENVIRON_KEY] = version
        version_headers = (
            (microversion.HEADER, f'{microversion.SERVICE_TYPE} {version}'),
            ('vary', microversion.HEADER),
        )

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            return start_response(status, [*headers, *version_headers], *args)

        return self.application(environ, start)
