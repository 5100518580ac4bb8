"""Authentication, and the request context."""

from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exc
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslotest import base

from placement import auth
from placement.http.request import ENVIRON_CONTEXT
from placement.tests.unit import edge


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
        config = edge.configuration()
        config.register_opts(
            dict(auth_token.list_opts())['keystone_authtoken'], 'keystone_authtoken'
        )
        config.set_override('delay_auth_decision', delay, 'keystone_authtoken')
        config.set_override('www_authenticate_uri', 'http://id', 'keystone_authtoken')
        layers = auth.KeystoneMiddleware(auth.ContextMiddleware(edge.ok, config), config)
        server = mock.Mock(**{'verify_token.side_effect': failure})
        layers.guarded._identity_server = server
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

    def test_other_failures(self):
        """For example, those of a client of memcached."""
        self.assertRaises(ZeroDivisionError, self.send, ZeroDivisionError())
