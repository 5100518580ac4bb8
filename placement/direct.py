"""The API inside the process of the caller, without a server and without a port.

Tools and other projects' tests talk to it as they would to a real service.
"""

from collections.abc import Callable, Iterable, Mapping
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

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class WSGIAdapter(adapters.HTTPAdapter):
    """A transport of the requests library that calls a WSGI application.

    :param application: what is called
    :param prefix: the URL below which the application is mounted
    """

    def __init__(self, application: WSGIApplication, prefix: str) -> None:
        super().__init__()
        self._application = application
        self._prefix = prefix

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Answer a request; everything that is about connections is ignored."""
        assert request.url is not None and request.method is not None
        body = request.body or b''
        wsgi_request = webob.Request.blank(
            request.url.removeprefix(self._prefix),
            base_url=self._prefix,
            method=request.method,
            headers=dict(request.headers),
            body=body.encode() if isinstance(body, str) else body,
        )
        answer = wsgi_request.get_response(self._application)
        response = urllib3.HTTPResponse(
            body=io.BytesIO(answer.body),
            headers=urllib3.HTTPHeaderDict(answer.headerlist),
            status=answer.status_int,
            reason=answer.status.partition(' ')[2],
            version=11,
            preload_content=False,
        )
        return self.build_response(request, response)


class PlacementDirect:
    """A context manager that gives a client of an application inside this process.

    ::

        with direct.PlacementDirect(conf, latest_microversion=True) as client:
            client.get('/allocation_candidates', params={'resources': 'VCPU:1'})

    The options have to be registered on `conf` and parsed, and the database has to be
    configured (`placement.db_api.configure`).

    :param conf: the configuration of the service; its `[api] auth_strategy` is set to noauth2
    :param latest_microversion: ask for the latest microversion wherever a call names none
    """

    def __init__(self, conf: cfg.ConfigOpts, latest_microversion: bool = False) -> None:
        conf.set_override('auth_strategy', 'noauth2', group='api')
        self.conf = conf
        self.headers = {'x-auth-token': 'admin', 'x-roles': 'admin,service'}
        self.default_microversion = 'latest' if latest_microversion else None

    def __enter__(self) -> adapter.Adapter:
        # Only those who enter pay for making the application.
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
