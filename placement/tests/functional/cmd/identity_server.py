"""A server on the loopback interface that plays the part of Keystone that clients use for a token.

A real Keystone is part of `tox -e keystone`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import http.server
import json
import threading
from typing import Any

import fixtures

USER = 'placement'
PASSWORD = 'hush-keystone'
TOKEN = 'hush-token-of-the-service'
# The path of a service in the catalog.
SERVICE = '/service'
KEYSTONE_INTERFACES = ('public', 'internal', 'admin')


@dataclass(frozen=True, slots=True)
class Reply:
    """A response of the server."""

    status: int
    body: bytes
    content_type: str = 'application/json'


class IdentityServer(fixtures.Fixture):
    """Issues a token to one user, and validates all tokens but `invalid`.

    Other users receive 401 Unauthorized.

    :param roles: the roles of the user
    :param catalog: the types of the services in the catalog
    :param interfaces: the interfaces of the endpoints of each service but identity
    :ivar endpoint: the URL of these endpoints; the server responds to it
    :ivar keystone: the URL of the endpoints of identity in the region `one`
    :ivar region: the region of the endpoints of the other services
    :ivar replies: replies that replace those for the version document, for the token of the user
        (`login`), and for the token of a client (`validation`)
    """

    def __init__(
        self,
        roles: tuple[str, ...] = ('service',),
        catalog: tuple[str, ...] = (),
        interfaces: tuple[str, ...] = ('public', 'internal'),
    ):
        super().__init__()
        self.roles = roles
        self.catalog = catalog
        self.interfaces = interfaces
        self.region = 'one'
        self.replies: dict[str, Reply] = {}

    def _setUp(self) -> None:
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Handler)
        server.daemon_threads = True
        root = f'http://127.0.0.1:{server.server_address[1]}'
        self.url = f'{root}/v3'
        self.endpoint = self.keystone = f'{root}{SERVICE}'
        server.fixture = self
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def version(self) -> dict[str, Any]:
        """The document at the URL of Keystone."""
        links = [{'rel': 'self', 'href': self.url}]
        return {'version': {'id': 'v3.14', 'status': 'stable', 'links': links}}

    def token(self) -> dict[str, Any]:
        """The document of a token."""
        keystone = _endpoints(KEYSTONE_INTERFACES, 'one', self.keystone)
        others = _endpoints(self.interfaces, self.region, self.endpoint)
        return {
            'token': {
                'methods': ['password'],
                'expires_at': '2099-01-01T00:00:00.000000Z',
                'user': {'id': 'u', 'name': USER, 'domain': {'id': 'default', 'name': 'Default'}},
                'project': {
                    'id': 'p',
                    'name': 'service',
                    'domain': {'id': 'default', 'name': 'Default'},
                },
                'roles': [{'id': role, 'name': role} for role in self.roles],
                'catalog': [
                    {
                        'id': kind,
                        'type': kind,
                        'name': kind,
                        'endpoints': keystone if kind == 'identity' else others,
                    }
                    for kind in self.catalog
                ],
            }
        }


def _endpoints(interfaces: Sequence[str], region: str, url: str) -> list[dict[str, str]]:
    return [{'interface': one, 'region_id': region, 'url': url, 'id': one} for one in interfaces]


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        fixture = self.server.fixture
        if self.path.startswith('/v3/auth/tokens') and self.headers['X-Subject-Token'] != 'invalid':
            self._send('validation', 200, fixture.token())
        else:
            self._send('version', 200 if self.path in ('/v3', SERVICE) else 404, fixture.version())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        user = body['auth']['identity']['password']['user']
        if (user['name'], user['password']) == (USER, PASSWORD):
            self._send('login', 201, self.server.fixture.token())
        else:
            error = {'code': 401, 'title': 'Unauthorized', 'message': 'Authenticate first.'}
            self._send('login', 401, {'error': error})

    def _send(self, kind: str, status: int, document: dict[str, Any]) -> None:
        usual = Reply(status, json.dumps(document).encode())
        reply = self.server.fixture.replies.get(kind, usual)
        self.send_response(reply.status)
        self.send_header('Content-Type', reply.content_type)
        self.send_header('Content-Length', str(len(reply.body)))
        self.send_header('X-Subject-Token', TOKEN)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *arguments: Any) -> None:
        pass
