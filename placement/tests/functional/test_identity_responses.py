"""Keystone, or a proxy in front of it, returns something other than a token.

The test of the parts of a token is in `placement.tests.unit.test_auth`.
"""

import itertools
import json
import logging
from typing import Any

import fixtures
from keystoneauth1 import loading
from oslotest import base

from placement import auth
from placement.http import Application
from placement.tests.functional.cmd import identity_server
from placement.tests.functional.cmd.identity_server import IdentityServer, Reply
from placement.tests.unit import edge, identity

TOKEN = 'hush-token-of-the-client'
SECRETS = (TOKEN, identity_server.TOKEN, identity_server.PASSWORD)

BODIES = (
    b'',
    *(json.dumps(value).encode() for value in (None, True, 1, 'text', [], [None], {})),
    *(json.dumps({'token': value}).encode() for value in (None, True, 1, 'text', [], {})),
    *(json.dumps({'version': value}).encode() for value in (None, 1, 'text', [], {})),
    *(json.dumps({'versions': value}).encode() for value in (None, 1, [None], {'values': None})),
    b'{"access": {"token": {"id": "x", "expires": "2099-01-01T00:00:00Z"}, "user": {}}}',
    b'{"error": {"code": 500, "message": "wrong"}}',
    b'{"error": null}',
    b'{"token": {',
    b'[' * 100_000,
    b'9' * 5_000,
    b'\xff\xfe\x00',
    b'<html><body>A proxy</body></html>',
    b'{"token": "' + b'x' * 2_000_000 + b'"}',
)
STATUSES = (200, 201, 300, 400, 401, 403, 404, 500, 503)
# Python has a codec idna, which can only decode the names of hosts.
TYPES = ('application/json', 'text/html', 'application/json; charset=idna')


class RepliesTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(handler.format(record))
        self.useFixture(fixtures.LogHandler(handler, level=logging.INFO))
        self.server = self.useFixture(IdentityServer(roles=('admin',), catalog=('identity',)))
        self.server.endpoint = self.server.url

    def application(self, **options: Any) -> Application:
        """Return a new middleware, which has neither the version document nor a token."""
        config = identity.configuration()
        loading.register_auth_conf_options(config, identity.GROUP)
        config.register_opts(loading.get_auth_plugin_conf_options('password'), identity.GROUP)
        usual = {
            'auth_type': 'password',
            'auth_url': self.server.url,
            'username': identity_server.USER,
            'password': identity_server.PASSWORD,
            'project_name': 'service',
            'user_domain_name': 'Default',
            'project_domain_name': 'Default',
        }
        for name, value in (usual | options).items():
            config.set_override(name, value, identity.GROUP)
        return auth.KeystoneMiddleware(auth.ContextMiddleware(edge.ok, config), config)

    def send(self, application: Application, token: str | None = TOKEN) -> edge.Response:
        headers = {} if token is None else {'HTTP_X_AUTH_TOKEN': token}
        return edge.call(application, edge.environ(path='/resource_providers', **headers))

    def assert_refused(self, response: edge.Response, statuses: tuple[int, ...]) -> None:
        self.assertIn(response.status, statuses, self.server.replies)
        for text in (*SECRETS, 'Traceback'):
            self.assertNotIn(text, '\n'.join(self.lines))
        self.lines.clear()

    def test_the_usual_replies(self):
        self.assertEqual(200, self.send(self.application()).status)

    def test_the_response_to_a_validation(self):
        application = self.application()
        for status, body, kind in itertools.product(STATUSES, BODIES, TYPES):
            self.server.replies = {'validation': Reply(status, body, kind)}
            expected = (401, 503) if status == 404 else (503,)
            self.assert_refused(self.send(application), expected)
        self.server.replies.clear()
        self.assertEqual(200, self.send(application).status)

    def test_the_token_of_the_service_user(self):
        for status, body in itertools.product((200, 201, 404, 500), BODIES):
            self.server.replies = {'login': Reply(status, body)}
            # keystonemiddleware interprets the status of any of its requests as the verdict.
            self.assert_refused(self.send(self.application()), (401, 503))

    def test_the_version_document(self):
        uri = {'www_authenticate_uri': None}
        for status, body, options in itertools.product((200, 300, 404), BODIES, ({}, uri)):
            self.server.replies = {'version': Reply(status, body)}
            response = self.send(self.application(**options))
            if response.status != 200:
                self.assert_refused(response, (401, 503))
            self.assert_refused(self.send(self.application(**options), token=None), (401, 503))
