"""Authentication, and the request context."""

import copy
import logging
from unittest import mock
import uuid

import fixtures
from keystoneauth1 import exceptions as keystone_exc
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context
from oslotest import base

from placement import auth
from placement.http import ENVIRON_CONTEXT
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


class ForgedIdentityTest(base.BaseTestCase):
    """A client sends the headers of an identity, and no valid token."""

    def setUp(self):
        super().setUp()
        self.received = {}
        invalid = mock.Mock(**{'verify_token.side_effect': auth_token.InvalidToken('forged')})
        inner = auth.ContextMiddleware(self._inside, cfg.ConfigOpts())
        self.noauth = auth.NoAuthMiddleware(inner)
        self.keystone = identity.middleware(inner, invalid)
        self.delayed = identity.middleware(inner, invalid, delay_auth_decision=True)

    def _inside(self, environ, start_response):
        self.received = dict(environ)
        return edge.ok(environ, start_response)

    def send(self, application, path: str, **headers: str) -> int:
        self.received = {}
        request = edge.environ(path=path, **IDENTITY, **CATALOG, **headers)
        return edge.call(application, request).status

    def assert_anonymous(self) -> None:
        """Check that the context of the last request has the values of a request without headers.

        The log reads its values from this context.
        """
        expected = context.RequestContext.from_environ({}, overwrite=False).to_dict()
        actual = context.get_current().to_dict()
        ignored = {'request_id', 'timestamp'}
        self.assertEqual(
            {key: value for key, value in expected.items() if key not in ignored},
            {key: value for key, value in actual.items() if key in expected.keys() - ignored},
        )

    def test_the_version_document(self):
        for application in (self.noauth, self.keystone, self.delayed):
            for path in ('', '/'):
                self.assertEqual(200, self.send(application, path))
                self.assert_anonymous()
                self.assertEqual(
                    set(), self.received.keys() & {**IDENTITY, **CATALOG}.keys(), application
                )

    def test_other_headers_are_kept(self):
        for application in (self.noauth, self.keystone):
            self.send(application, '/', HTTP_ACCEPT='x', HTTP_X_OPENSTACK_REQUEST_ID='y')
            self.assertEqual('x', self.received['HTTP_ACCEPT'])
            self.assertEqual('y', self.received['HTTP_X_OPENSTACK_REQUEST_ID'])

    def test_requests_that_keystone_rejects(self):
        for application in (self.keystone, self.delayed):
            for token in ({}, {'HTTP_X_AUTH_TOKEN': 'forged'}):
                context.RequestContext()
                self.assertEqual(401, self.send(application, '/traits', **token))
                current = context.get_current().to_dict()
                self.assertNotIn('forged', {**current, 'auth_token': None}.values())
                self.assertEqual({}, self.received)

    def test_all_headers_of_keystonemiddleware(self):
        request = auth_token._request._AuthTokenRequest.blank('/')
        request.environ.update(IDENTITY | CATALOG)
        request.remove_auth_headers()
        left = request.environ.keys() & (IDENTITY | CATALOG).keys()
        self.assertEqual({'HTTP_OPENSTACK_SYSTEM_SCOPE'}, left)


class NoAuthTest(base.BaseTestCase):
    """The token is the identity, and the request context contains this identity."""

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        layers = auth.ContextMiddleware(self._keep_context, self.conf)
        self.application = auth.NoAuthMiddleware(layers)
        self.context = None

    def _keep_context(self, environ, start_response):
        self.context = environ[ENVIRON_CONTEXT]
        return edge.ok(environ, start_response)

    def send(self, path='/traits', **headers):
        return edge.call(self.application, edge.environ(path=path, **headers))

    def assert_identity(self, user_id, project_id, roles):
        self.assertEqual(
            (user_id, project_id, roles),
            (self.context.user_id, self.context.project_id, self.context.roles),
        )

    def test_no_token(self):
        response = self.send()
        self.assertEqual(401, response.status)
        self.assertEqual({'message', 'code', 'title'}, response.json.keys())
        self.assertEqual('401 Unauthorized', response.json['code'])
        self.assertIsNone(self.context)

    def test_the_version_document_needs_no_token(self):
        for path in ('', '/'):
            self.assertEqual(200, self.send(path).status)
            self.assertIsNone(self.context.user_id)

    def test_admin(self):
        self.send(HTTP_X_AUTH_TOKEN='admin')
        self.assert_identity('admin', 'admin', ['admin'])

    def test_user_and_project(self):
        self.send(HTTP_X_AUTH_TOKEN='me:mine:and:more')
        self.assert_identity('me', 'mine:and:more', [])

    def test_no_project(self):
        self.send(HTTP_X_AUTH_TOKEN='me:')
        self.assert_identity('me', 'me', [])

    def test_an_empty_token_is_a_token(self):
        self.assertEqual(200, self.send(HTTP_X_AUTH_TOKEN='').status)
        self.assert_identity('', '', [])

    def test_roles(self):
        self.send(HTTP_X_AUTH_TOKEN='admin', HTTP_X_ROLES='reader, member')
        self.assert_identity('admin', 'admin', ['reader', 'member'])

    def test_the_project_header_replaces_the_project_of_the_token(self):
        for token in ('me', 'me:', 'me:mine'):
            self.send(HTTP_X_AUTH_TOKEN=token, HTTP_X_PROJECT_ID='theirs')
            self.assert_identity('me', 'theirs', [])

    def test_an_empty_project_header_has_no_effect(self):
        self.send(HTTP_X_AUTH_TOKEN='me:mine', HTTP_X_PROJECT_ID='')
        self.assert_identity('me', 'mine', [])

    def test_a_system_scope_excludes_a_project(self):
        for project in ('HTTP_X_PROJECT_ID', 'HTTP_X_TENANT_ID', 'HTTP_X_TENANT'):
            self.send(
                HTTP_X_AUTH_TOKEN='me:mine', HTTP_OPENSTACK_SYSTEM_SCOPE='all', **{project: 'x'}
            )
            self.assert_identity('me', None, [])
            self.assertEqual('all', self.context.system_scope)

    def test_an_empty_system_scope_has_no_effect(self):
        self.send(HTTP_X_AUTH_TOKEN='me:mine', HTTP_OPENSTACK_SYSTEM_SCOPE='')
        self.assert_identity('me', 'mine', [])

    def test_the_context_has_the_configuration(self):
        self.send(HTTP_X_AUTH_TOKEN='admin')
        self.assertIs(self.conf, self.context.config)


class ContextTest(base.BaseTestCase):
    """The middleware if an earlier middleware accepted an unauthenticated request."""

    application = auth.ContextMiddleware(edge.ok, cfg.ConfigOpts())

    def test_an_unauthenticated_request_is_rejected(self):
        self.assertEqual(401, edge.call(self.application, edge.environ(path='/x')).status)

    def test_the_root_needs_no_authentication(self):
        self.assertEqual(200, edge.call(self.application, edge.environ(path='/')).status)


class KeystoneFailureTest(base.BaseTestCase):
    """Keystone cannot be used to validate a token."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement'))

    def send(self, failure: Exception, delay: bool = False) -> edge.Response:
        """Send a request whose token keystonemiddleware cannot validate."""
        server = mock.Mock(**{'verify_token.side_effect': failure})
        inner = auth.ContextMiddleware(edge.ok, edge.configuration())
        layers = identity.middleware(inner, server, delay_auth_decision=delay)
        return edge.call(layers, edge.environ(path='/traits', HTTP_X_AUTH_TOKEN='secret'))

    def assert_unavailable(self, response: edge.Response) -> None:
        self.assertEqual(503, response.status)
        self.assertEqual('1', response.headers['retry-after'])
        self.assertIn('identity service', response.error['detail'])
        self.assertNotIn('secret', self.log.output)

    def test_failures_that_keystonemiddleware_handles(self):
        for failure in (
            keystone_exc.ConnectFailure('refused'),
            keystone_exc.DiscoveryFailure('no versions'),
            auth_token.ServiceError('500 of Keystone'),
        ):
            for delay in (False, True):
                self.assert_unavailable(self.send(failure, delay))
        self.assertEqual('', self.log.output)

    def test_failures_that_keystonemiddleware_does_not_handle(self):
        for failure in (
            keystone_exc.EndpointNotFound('no endpoint'),
            keystone_exc.ConnectTimeout('no response'),
            keystone_exc.SSLError('certificate'),
            keystone_exc.MissingAuthPlugin('no auth_type'),
        ):
            self.assert_unavailable(self.send(failure))
            self.assertIn(str(failure), self.log.output)

    def test_an_invalid_token(self):
        for delay in (False, True):
            self.assertEqual(401, self.send(auth_token.InvalidToken('expired'), delay).status)

    def test_tokens_that_no_request_to_keystone_can_contain(self):
        """The library that sends the request would write the token into its exception."""
        server = mock.Mock()
        inner = auth.ContextMiddleware(edge.ok, edge.configuration())
        layers = identity.middleware(inner, server)
        for token in ('secret\rX', 'secret\n X', 'secret\r\nX-Roles: admin'):
            for name in ('HTTP_X_AUTH_TOKEN', 'HTTP_X_SERVICE_TOKEN'):
                response = edge.call(layers, edge.environ(path='/traits', **{name: token}))
                self.assertEqual(401, response.status)
        server.verify_token.assert_not_called()
        self.assertEqual('', self.log.output)

    def test_other_failures(self):
        """For example, those of a library that interprets what Keystone returned."""
        self.assert_unavailable(self.send(ZeroDivisionError('x' * 10_000)))
        self.assertIn('ZeroDivisionError: xxx', self.log.output)
        self.assertLess(len(self.log.output), 2000)


class TokenPartsTest(base.BaseTestCase):
    """Keystone, or a proxy in front of it, returns a token with wrong parts."""

    def setUp(self):
        super().setUp()
        # keystonemiddleware logs each wrong token.
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL + 1))
        self.data = {}
        self.keystone = identity.Keystone()
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
        server = mock.Mock(**{'verify_token.side_effect': lambda *_, **options: self.data})
        self.store = mock.Mock(**{'get.return_value': None})
        inner = auth.ContextMiddleware(self._inside, edge.configuration())
        self.application = identity.middleware(
            inner, server, self.store, service_type='placement', service_token_roles=['admin']
        )

    def _inside(self, environ, start_response):
        for name in (*IDENTITY, *CATALOG):
            self.assertIsInstance(environ.get(name), str | None, name)
        return edge.ok(environ, start_response)

    def send(self, data, **headers: str) -> int:
        """Send a request with a new token, for which Keystone returns some data."""
        self.data = data
        token = str(uuid.uuid4())
        request = edge.environ(path='/traits', HTTP_X_AUTH_TOKEN=token, **headers)
        return edge.call(self.application, request).status

    def test_the_whole_token(self):
        self.assertEqual(200, self.send(self.whole))
        self.assertEqual(200, self.send(self.whole, HTTP_X_SERVICE_TOKEN='s'))

    def test_each_part(self):
        junk = (None, True, 0, 1.5, 10**400, '', 'text', '0000-00-00', [], [None], ['x'], {})
        self.assertGreater(len(list(parts(self.whole))), 40)
        for place, name in parts(self.whole):
            kept = place[name]
            for place[name] in junk:
                self._assert_no_failure()
            if isinstance(place, dict):
                del place[name]
                self._assert_no_failure()
            place[name] = kept
        self.assertEqual(200, self.send(self.whole))

    def _assert_no_failure(self) -> None:
        for headers in ({}, {'HTTP_X_SERVICE_TOKEN': str(uuid.uuid4())}):
            self.assertIn(self.send(self.whole, **headers), (200, 401, 503), self.whole)

    def test_a_token_without_an_identity_is_not_stored(self):
        for name in ('user', 'expires_at'):
            data = copy.deepcopy(self.whole)
            data['token'][name] = None
            self.assertEqual(503, self.send(data))
        self.store.set.assert_not_called()

    def test_dates(self):
        for date in (
            '0001-01-01T00:00:00+14:00',
            '9999-12-31T23:59:59-14:00',
            '2099-13-01T00:00:00Z',
            '2099-01-01T00:00:00Z\0',
            '9' * 5000,
        ):
            self.whole['token']['expires_at'] = date
            self.assertIn(self.send(self.whole), (401, 503), date)


def parts(value):
    """Yield each dictionary and list in a value, with each of its keys or indexes."""
    for name in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, name
        if isinstance(value[name], (dict, list)):
            yield from parts(value[name])
