"""Authentication, and the request context."""

import logging
import uuid

import fixtures
from keystoneauth1 import exceptions as keystone_exc
from keystonemiddleware import auth_token
from oslo_context import context
from oslotest import base

from placement import auth
from placement.tests.unit import edge, identity

# The headers from which oslo.context creates a context, except tokens.
IDENTITY = {
    key: 'forged'
    for keys in context._ENVIRON_HEADERS.values()
    for key in keys
    if key.startswith('HTTP_') and not key.endswith('_TOKEN')
} | {
    'HTTP_X_ROLES': 'forged',
    'HTTP_X_ROLE': 'forged',
    'HTTP_X_SERVICE_ROLES': 'forged',
    'HTTP_X_IS_ADMIN_PROJECT': 'False',
}
# The headers that only keystonemiddleware sets.
CATALOG = {
    'HTTP_X_IDENTITY_STATUS': 'Confirmed',
    'HTTP_X_SERVICE_IDENTITY_STATUS': 'Confirmed',
    'HTTP_X_SERVICE_CATALOG': '[]',
}


class AuthCase(base.BaseTestCase):
    """Requests to a middleware, and the environment that the application receives."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement'))
        # keystonemiddleware logs each rejected token.
        self.useFixture(fixtures.FakeLogger('keystonemiddleware', logging.CRITICAL))
        self.keystone = self.useFixture(identity.Keystone())
        self.inner = auth.ContextMiddleware(self._inside, edge.configuration())
        self.received = {}

    def _inside(self, environ, start_response):
        self.received = dict(environ)
        return edge.ok(environ, start_response)

    def send(self, application, path: str = '/traits', **headers: str) -> edge.Response:
        self.received = {}
        return edge.call(application, edge.environ(path=path, **headers))


class ForgedIdentityTest(AuthCase):
    """A client sends the headers of an identity, and no valid token."""

    def setUp(self):
        super().setUp()
        self.noauth = auth.NoAuthMiddleware(self.inner)
        self.keystones = [
            identity.middleware(self.inner, delay_auth_decision=delay) for delay in (False, True)
        ]

    def test_the_version_document(self):
        for application in (self.noauth, *self.keystones):
            for path in ('', '/'):
                forged = {**IDENTITY, **CATALOG}
                kept = {'HTTP_ACCEPT': 'x', 'HTTP_X_OPENSTACK_REQUEST_ID': 'y'}
                self.assertEqual(200, self.send(application, path, **forged, **kept).status)
                # The log reads its values from the context.
                expected = context.RequestContext.from_environ({}, overwrite=False).to_dict()
                actual = context.get_current().to_dict()
                for name in expected.keys() - {'request_id', 'timestamp'}:
                    self.assertEqual(expected[name], actual[name], name)
                self.assertEqual(set(), self.received.keys() & forged.keys(), application)
                self.assertLess(kept.items(), self.received.items())

    def test_requests_that_keystone_rejects(self):
        for application in self.keystones:
            for token in ({}, {'HTTP_X_AUTH_TOKEN': 'forged'}):
                context.RequestContext()
                response = self.send(application, **IDENTITY, **CATALOG, **token)
                self.assertEqual(401, response.status)
                current = context.get_current().to_dict()
                self.assertNotIn('forged', {**current, 'auth_token': None}.values())
                self.assertEqual({}, self.received)


class NoAuthTest(AuthCase):
    """gabbi/authentication.yaml tests the other forms of a token."""

    def test_identities(self):
        system = {'HTTP_OPENSTACK_SYSTEM_SCOPE': 'all'}
        for token, headers, expected in (
            ('me:mine:and:more', {}, ('me', 'mine:and:more', [], None)),
            ('me:', {}, ('me', 'me', [], None)),
            ('admin', {'HTTP_X_ROLES': 'a, b'}, ('admin', 'admin', ['a', 'b'], None)),
            ('me:mine', {'HTTP_X_PROJECT_ID': 'theirs'}, ('me', 'theirs', [], None)),
            ('me:mine', {'HTTP_X_PROJECT_ID': ''}, ('me', '', [], None)),
            ('me:mine', {'HTTP_X_PROJECT_ID': 'x', **system}, ('me', None, [], 'all')),
            ('me:mine', {'HTTP_X_TENANT_ID': 'x', **system}, ('me', None, [], 'all')),
            ('me:mine', {'HTTP_X_TENANT': 'x', **system}, ('me', None, [], 'all')),
            ('me:mine', {'HTTP_OPENSTACK_SYSTEM_SCOPE': ''}, ('me', 'mine', [], '')),
        ):
            with self.subTest(token=token, headers=headers):
                layers = auth.NoAuthMiddleware(self.inner)
                sent = self.send(layers, HTTP_X_AUTH_TOKEN=token, **headers)
                found = context.get_current()
                identity_of = (found.user_id, found.project_id, found.roles, found.system_scope)
                self.assertEqual((200, expected), (sent.status, identity_of))


class KeystoneFailureTest(AuthCase):
    """Keystone cannot be used to validate a token."""

    def fail(self, failure: Exception, delay: bool = False) -> edge.Response:
        """Send a request whose token keystonemiddleware cannot validate."""

        def respond(*_args: object) -> None:
            raise failure

        self.keystone.respond = respond
        layers = identity.middleware(self.inner, delay_auth_decision=delay)
        return self.send(layers, HTTP_X_AUTH_TOKEN='secret')

    def assert_unavailable(self, response: edge.Response) -> None:
        self.assertEqual((503, '1'), (response.status, response.headers['retry-after']))
        self.assertIn('identity service', response.error['detail'])
        self.assertNotIn('secret', self.log.output)

    def test_failures_that_keystonemiddleware_handles(self):
        for failure in (
            keystone_exc.ConnectFailure('refused'),
            keystone_exc.DiscoveryFailure('no versions'),
            auth_token.ServiceError('500 of Keystone'),
        ):
            for delay in (False, True):
                self.assert_unavailable(self.fail(failure, delay))
        self.assertEqual('', self.log.output)

    def test_failures_that_keystonemiddleware_does_not_handle(self):
        for failure in (
            keystone_exc.EndpointNotFound('no endpoint'),
            keystone_exc.ConnectTimeout('no response'),
            keystone_exc.SSLError('certificate'),
            keystone_exc.MissingAuthPlugin('no auth_type'),
        ):
            self.assert_unavailable(self.fail(failure))
            self.assertIn(str(failure), self.log.output)
        # For example, a failure of a library that interprets what Keystone returned.
        before = len(self.log.output)
        self.assert_unavailable(self.fail(ZeroDivisionError('x' * 10_000)))
        self.assertIn('ZeroDivisionError: xxx', self.log.output)
        self.assertLess(len(self.log.output) - before, 2000)

    def test_tokens_that_no_request_to_keystone_can_contain(self):
        """The library that sends the request would write the token into its exception."""
        for token in ('secret\rX', 'secret\n X', 'secret\r\nX-Roles: admin'):
            for name in ('HTTP_X_AUTH_TOKEN', 'HTTP_X_SERVICE_TOKEN'):
                layers = identity.middleware(self.inner)
                self.assertEqual(401, self.send(layers, **{name: token}).status)
        self.assertEqual([], self.keystone.validated)
        self.assertEqual('', self.log.output)


class TokenPartsTest(AuthCase):
    """Keystone, or a proxy in front of it, returns a token with wrong parts."""

    def setUp(self):
        super().setUp()
        rules = [{'id': 'i', 'method': 'GET', 'path': '/traits', 'service': 'placement'}]
        self.keystone.issue(
            'a',
            issued_at='2026-01-01T00:00:00.000000Z',
            application_credential={'id': 'x', 'name': 'x', 'access_rules': rules},
            bind={'other': 'x'},
            domain={'id': 'x', 'name': 'x'},
            system={'all': True},
            is_admin_project=True,
        )
        self.whole = self.keystone.verify_token('a')
        self.whole['token']['catalog'][0]['endpoints'] = [
            {'interface': 'public', 'region': 'x', 'url': 'http://x', 'id': 'x'}
        ]
        self.keystone.respond = lambda *_: self.whole
        self.application = identity.middleware(
            self.inner, service_type='placement', service_token_roles=['admin']
        )

    def status(self, **headers: str) -> int:
        """Send a request with a new token, and check the type of the identity headers."""
        response = self.send(self.application, HTTP_X_AUTH_TOKEN=str(uuid.uuid4()), **headers)
        for name in (*IDENTITY, *CATALOG):
            self.assertIsInstance(self.received.get(name), str | None, name)
        return response.status

    def test_each_part(self):
        junk = (None, True, 0, 1.5, 10**400, '', 'text', '0000-00-00', [], [None], ['x'], {})
        self.assertGreater(len(list(edge.parts(self.whole))), 40)
        self.assertEqual(200, self.status(HTTP_X_SERVICE_TOKEN='s'))
        for place, name in edge.parts(self.whole):
            kept = place[name]
            for place[name] in junk:
                self._assert_no_failure()
            if isinstance(place, dict):
                del place[name]
                self._assert_no_failure()
            place[name] = kept
        self.assertEqual(200, self.status())

    def _assert_no_failure(self) -> None:
        for headers in ({}, {'HTTP_X_SERVICE_TOKEN': str(uuid.uuid4())}):
            self.assertIn(self.status(**headers), (200, 401, 503), self.whole)

    def test_dates(self):
        for date in (
            '0001-01-01T00:00:00+14:00',
            '9999-12-31T23:59:59-14:00',
            '2099-13-01T00:00:00Z',
            '2099-01-01T00:00:00Z\0',
            '9' * 5000,
        ):
            self.whole['token']['expires_at'] = date
            self.assertIn(self.status(), (401, 503), date)
