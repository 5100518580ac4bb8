"""Call the Placement API inside the current process, without a web server or a port.

Tools, and the tests of other projects, use this module instead of a running service.
"""

import io
from types import TracebackType
from typing import Any
import uuid

from keystoneauth1 import adapter, session
from oslo_config import cfg
import requests
from requests import adapters
import urllib3
import webob

from placement.http import Application


class WSGIAdapter(adapters.HTTPAdapter):
    """A transport adapter for the requests library that calls a WSGI application.

    :param application: the application that serves the requests
    :param prefix: the URL of the root of the application
    """

    def __init__(self, application: Application, prefix: str) -> None:
        super().__init__()
        self._application = application
        self._prefix = prefix

    def send(
        self, request: requests.PreparedRequest, *_args: Any, **_options: Any
    ) -> requests.Response:
        """Return the response of the application; connection options have no effect."""
        assert request.url is not None and request.method is not None
        body = request.body or b''
        wsgi_request = webob.Request.blank(
            request.url.removeprefix(self._prefix),
            base_url=self._prefix,
            method=request.method,
            headers=dict(request.headers),
            body=body.encode() if isinstance(body, str) else body,
        )
        wsgi_response = wsgi_request.get_response(self._application)
        response = urllib3.HTTPResponse(
            body=io.BytesIO(wsgi_response.body),
            headers=urllib3.HTTPHeaderDict(wsgi_response.headerlist),
            status=wsgi_response.status_int,
            reason=wsgi_response.status.partition(' ')[2],
            version=11,
            preload_content=False,
        )
        return self.build_response(request, response)


class PlacementDirect:
    """A context manager that returns a client for a Placement application in this process.

    ::

        with direct.PlacementDirect(conf, latest_microversion=True) as client:
            client.get('/allocation_candidates', params={'resources': 'VCPU:1'})

    Before use, the caller must register the options on `conf`, parse the configuration, and
    configure the database (`placement.db_api.configure`).

    :param conf: the configuration of the service; this class sets `[api] auth_strategy` to noauth2
    :param latest_microversion: whether requests without a microversion use the latest microversion
    """

    def __init__(self, conf: cfg.ConfigOpts, latest_microversion: bool = False) -> None:
        conf.set_override('auth_strategy', 'noauth2', group='api')
        self.conf = conf
        self.headers = {'x-auth-token': 'admin', 'x-roles': 'admin,service'}
        self.default_microversion = 'latest' if latest_microversion else None

    def __enter__(self) -> adapter.Adapter:
        # The import of `deploy` is slow, so it is postponed until a client is needed.
        from placement import deploy

        url = f'http://{uuid.uuid4()}/placement'
        self._transport = requests.Session()
        self._transport.trust_env = False
        self._transport.mount(url, WSGIAdapter(deploy.loadapp(self.conf), url))
        return adapter.Adapter(
            session.Session(session=self._transport, auth=None),
            service_type='placement',
            endpoint_override=url,
            default_microversion=self.default_microversion,
            additional_headers=self.headers,
            raise_exc=False,
        )

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._transport.close()
        self._transport.adapters.clear()
