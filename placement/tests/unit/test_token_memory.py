"""The memory of validated tokens, with a Keystone in this process."""

from collections.abc import Iterator
import gc
import logging
import os
import tracemalloc
import types
from typing import Any
from unittest import mock
import uuid

import fixtures
from keystoneauth1 import exceptions as keystone_exc
from oslotest import base

from placement.tests.unit import edge, identity
from placement.tests.unit.identity import CACHE_TIME
from placement.tests.unit.telemetry.switched_on import SwitchedOn

VARIABLE = 'PLACEMENT_TEST_TOKENS'
# A token for some requests only.
RESTRICTED = {
    'id': 'x',
    'access_rules': [{'id': '1', 'method': 'GET', 'path': '/traits', 'service': 'placement'}],
}
FORGED = {
    'HTTP_X_ROLES': 'forged',
    'HTTP_X_USER_ID': 'forged',
    'HTTP_X_PROJECT_ID': 'forged',
    'HTTP_X_SERVICE_ROLES': 'forged',
    'HTTP_X_IDENTITY_STATUS': 'Invalid',
    'HTTP_X_SERVICE_IDENTITY_STATUS': 'Confirmed',
    'HTTP_X_SERVICE_CATALOG': 'forged',
    'HTTP_OPENSTACK_SYSTEM_SCOPE': 'all',
}
CATALOG = 'HTTP_X_SERVICE_CATALOG'
TOKENS = ('HTTP_X_AUTH_TOKEN', 'HTTP_X_SERVICE_TOKEN')


class TokenCase(base.BaseTestCase):
    """Requests to the middleware, at the time of a clock that the test sets."""

    def setUp(self):
        super().setUp()
        # keystonemiddleware logs each rejected token.
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL + 1))
        self.clock = self.useFixture(identity.Clock())
        self.keystone = self.useFixture(identity.Keystone())
        self.received: dict[str, Any] = {}
        self.start()
        self.keystone.issue('a')
        self.keystone.issue('s', roles=('service',))

    def start(self, **options: Any) -> None:
        """Create the middleware of a new process."""
        self.layer = identity.middleware(self._inside, **options)

    def _inside(self, environ, start_response):
        self.received = dict(environ)
        return edge.ok(environ, start_response)

    def send(
        self,
        token: str | None,
        service: str | None = None,
        path: str = '/traits',
        method: str = 'GET',
        **more: str,
    ) -> int:
        """Send a request and return the status."""
        self.received = {}
        tokens = zip(TOKENS, (token, service), strict=True)
        sent = {name: value for name, value in tokens if value is not None}
        environ = edge.environ(method, path, **sent, **more)
        return edge.call(self.layer, environ).status

    def identity(self) -> dict[str, Any]:
        """Return the identity headers of the last request."""
        names = ('HTTP_X_', 'HTTP_OPENSTACK_SYSTEM_SCOPE')
        other = (*TOKENS, CATALOG)
        return {k: v for k, v in self.received.items() if k.startswith(names) and k not in other}

    def validations(self) -> int:
        """Return the number of validations since the last call."""
        number = len(self.keystone.validated)
        self.keystone.validated.clear()
        return number

    def assert_valid_for(self, seconds: float, *tokens: str) -> None:
        """Check that a request is accepted until a time from now, and rejected from then on."""
        self.validations()
        self.clock.advance(seconds - 0.5)
        self.assertEqual(200, self.send(*tokens))
        self.assertEqual(0, self.validations())
        self.clock.advance(0.5)
        self.assertEqual(401, self.send(*tokens))
        self.assertLessEqual(1, self.validations())


class KnownTokenTest(TokenCase):
    """A token that the process has validated."""

    def test_it_is_validated_once(self):
        metrics = self.useFixture(SwitchedOn())
        for path, method in (('/traits', 'GET'), ('/traits', 'GET'), ('/usages', 'PUT')):
            self.assertEqual(200, self.send('a', path=path, method=method))
        self.assertEqual('/usages', self.received['PATH_INFO'])
        self.assertEqual(['a'], self.keystone.validated)
        self.assertEqual({'memory': 2}, metrics.increased('placement_token_hits_total'))

    def test_white_space_around_a_token_makes_no_other_token(self):
        """Otherwise, one client could replace the tokens of all others in the memory."""
        for token in ('a', ' a', 'a\xa0', '\x1fa\x85'):
            self.assertEqual(200, self.send(token))
        self.assertEqual(1, self.validations())
        for service in ('s', 's ', '\xa0s'):
            self.assertEqual(200, self.send('a', service))
        self.assertEqual(['s', 'a'], self.keystone.validated)
        # keystonemiddleware rejects such a service token, which is not an absent one.
        self.assertEqual([401, 401], [self.send('a', ' ') for _ in range(2)])
        self.validations()
        self.assertEqual(200, self.send('a', ''))
        self.assertEqual(0, self.validations())

    def test_the_headers_are_those_of_the_first_request(self):
        for name, scope in (
            ('project', {}),
            ('system', {'system': {'all': True}, 'project': None}),
            ('domain', {'domain': {'id': 'd', 'name': 'D'}, 'project': None}),
        ):
            self.keystone.issue(name, roles=('admin', 'member'), **scope)
            for service in (None, 's'):
                self.assertEqual(200, self.send(name, service))
                first = self.identity()
                self.assertEqual(f'user-{name}', first['HTTP_X_USER_ID'])
                self.assertEqual(service is not None, 'HTTP_X_SERVICE_ROLES' in first)
                self.validations()
                self.assertEqual(200, self.send(name, service))
                self.assertEqual(first, self.identity())
                self.assertEqual(0, self.validations())
                absent = {CATALOG, 'keystone.token_info', 'keystone.token_auth'}
                self.assertEqual(set(), absent & self.received.keys())

    def test_headers_of_the_client_have_no_effect(self):
        for first, later in (({}, FORGED), (FORGED, {})):
            self.start()
            self.send('a', **first)
            expected = self.identity()
            self.assertEqual('admin', expected['HTTP_X_ROLES'])
            self.assertNotIn('HTTP_X_SERVICE_ROLES', expected)
            self.assertIsNone(expected['HTTP_OPENSTACK_SYSTEM_SCOPE'])
            self.assertEqual(200, self.send('a', **later))
            self.assertEqual(expected, self.identity())
            self.assertNotIn(CATALOG, self.received)
            self.assertEqual(1, self.validations())

    def test_the_least_recently_used_token_is_dropped(self):
        self.start(token_memory=2)
        for token in ('a', 'b', 'a', 'c', 'a', 'b'):
            self.send(self.keystone.issue(token))
        self.assertEqual(['a', 'b', 'c', 'b'], self.keystone.validated)

    def test_no_text_of_a_token_is_kept(self):
        user = {'id': 'u', 'name': 'the-user', 'domain': {'id': 'd', 'name': 'D'}}
        tokens = [
            self.keystone.issue(uuid.uuid4().hex, 60, ('service',), user=user, project=user)
            for _ in range(2)
        ]
        for sent in (tokens, tokens, tokens[:1]):
            self.assertEqual(200, self.send(*sent))
        self.received.clear()
        kept = [str(value) for value in reachable(self.layer)]
        self.assertIn('the-user', kept)
        for token in tokens:
            self.assertFalse([text for text in kept if token in text])


def reachable(root: object) -> Iterator[object]:
    """Yield the texts and bytes to which an object refers, without those of code."""
    code = (type, types.ModuleType, types.FunctionType, types.MethodType)
    seen, pending = set(), [root]
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, code):
            continue
        seen.add(id(one))
        if isinstance(one, (str, bytes)):
            yield one
        pending.extend(gc.get_referents(one))


class EndTest(TokenCase):
    """A verdict ends."""

    def test_a_revoked_token(self):
        self.send('a')
        self.keystone.revoke('a')
        self.assert_valid_for(CACHE_TIME, 'a')

    def test_the_time_is_that_before_the_response_of_keystone(self):
        """The older of two verdicts counts."""
        self.keystone.before_response = lambda: self.clock.advance(100)
        for tokens, age, revoked in ((('a',), 100, 'a'), (('b', 's'), 200, 's')):
            self.send(*tokens)
            self.keystone.revoke(revoked)
            self.keystone.issue('b')
            self.assert_valid_for(CACHE_TIME - age, *tokens)

    def test_a_token_expires(self):
        for tokens in ((self.keystone.issue('a', 60),), ('b', self.keystone.issue('s', 120))):
            self.keystone.issue('b', roles=('service',))
            self.keystone.issue('s', 60, roles=('service',))
            self.send(*tokens)
            self.assert_valid_for(60, *tokens)

    def test_the_clock_is_set_back(self):
        self.keystone.before_response = lambda: self.clock.advance(100)
        self.send('a')
        self.keystone.revoke('a')
        self.clock.set(-3600)
        self.clock.advance(CACHE_TIME - 101)
        self.assertEqual(200, self.send('a'))
        self.clock.advance(1)
        self.assertEqual(401, self.send('a'))

    def test_the_clock_is_set_back_during_a_validation(self):
        self.keystone.before_response = lambda: self.clock.set(-3600)
        self.send('a')
        self.keystone.revoke('a')
        self.assert_valid_for(CACHE_TIME, 'a')

    def test_the_machine_was_suspended(self):
        """The monotonic clock stood still meanwhile."""
        self.send('a')
        self.keystone.revoke('a')
        self.clock.set(CACHE_TIME)
        self.assertEqual(401, self.send('a'))


class DependentTest(TokenCase):
    """Tokens whose validity depends on the request."""

    def test_access_rules(self):
        self.start(service_type='placement')
        self.keystone.issue('a', application_credential=RESTRICTED)
        for _ in range(2):
            self.assertEqual(200, self.send('a'))
            self.assertEqual(401, self.send('a', method='PUT'))
            self.assertEqual(401, self.send('a', path='/usages'))
        self.assertEqual(6, self.validations())
        # keystonemiddleware does not check the rules of requests of services.
        self.assertEqual(200, self.send('a', 's', method='PUT'))
        self.assertEqual(401, self.send('a', method='PUT'))
        self.assertEqual(401, self.send('a', 'a', method='PUT'))

    def test_access_rules_of_a_token_without_a_catalog(self):
        self.start(service_type='placement', include_service_catalog=False)
        self.keystone.issue('a', application_credential=RESTRICTED, catalog=None)
        self.assertEqual(401, self.send('a'))

    def test_an_application_credential_without_access_rules(self):
        self.keystone.issue('a', application_credential={'id': 'x', 'restricted': True})
        self.assertEqual([200, 200], [self.send('a'), self.send('a', method='PUT')])
        self.assertEqual(1, self.validations())

    def test_a_bound_token(self):
        bound = {'AUTH_TYPE': 'Negotiate', 'REMOTE_USER': 'me'}
        self.keystone.issue('b', roles=('service',), bind={'kerberos': 'me'})
        for tokens in (('b',), ('a', 'b')):
            for _ in range(2):
                self.assertEqual(200, self.send(*tokens, **bound))
                self.assertEqual(401, self.send(*tokens, **bound | {'REMOTE_USER': 'you'}))
                self.assertEqual(401, self.send(*tokens))

    def test_an_expired_token_with_a_service_token(self):
        self.keystone.issue('a', lifetime=-60)
        for _ in range(2):
            self.assertEqual(200, self.send('a', 's'))
            self.assertEqual(401, self.send('a'))
        self.assertEqual(['s', 'a', 'a'] * 2, self.keystone.validated)

    def test_a_token_that_expires_with_a_service_token(self):
        self.keystone.issue('a', lifetime=60)
        self.send('a', 's')
        self.clock.advance(61)
        self.validations()
        # keystonemiddleware accepts the token again, because Keystone does.
        self.assertEqual([200, 200], [self.send('a', 's') for _ in range(2)])
        self.assertEqual(4, self.validations())
        self.assertEqual(401, self.send('a'))

    def test_an_invalid_service_token(self):
        self.keystone.issue('expired', lifetime=-1, roles=('service',))
        self.keystone.issue('without the role')
        self.send('a')
        for service in ('expired', 'unknown', 'without the role'):
            for _ in range(2):
                self.validations()
                self.assertEqual(401, self.send('a', service))
                self.assertLessEqual(1, self.validations())
        self.assertEqual(200, self.send('a'))
        self.assertNotIn('HTTP_X_SERVICE_IDENTITY_STATUS', self.received)
        self.assertEqual(0, self.validations())

    def test_only_the_same_pair_of_tokens_is_known(self):
        for token in ('a', 'b', 'ab', 's'):
            self.keystone.issue(token, roles=('service',))
        for pair in (('a', 's'), ('s', 'a'), ('b', 's'), ('ab', 's'), ('a', 'bs'), ('a', None)):
            self.validations()
            expected = 401 if 'bs' in pair else 200
            self.assertEqual(expected, self.send(*pair))
            self.assertLessEqual(1, self.validations(), pair)
        self.assertEqual(200, self.send('a', 's'))
        self.assertEqual('service', self.identity()['HTTP_X_SERVICE_ROLES'])
        self.assertEqual(0, self.validations())


class NotRememberedTest(TokenCase):
    """Tokens that are validated in each request."""

    def test_options_that_disable_the_memory(self):
        for options in ({'token_cache_time': 0}, {'token_cache_time': -1}, {'token_memory': 0}):
            self.start(**options)
            self.assertEqual([200] * 3, [self.send('a') for _ in range(3)])
            self.assertEqual(3, self.validations(), options)

    def test_delay_auth_decision(self):
        self.start(delay_auth_decision=True)
        for _ in range(2):
            self.assertEqual(200, self.send('a'))
            self.assertEqual('Confirmed', self.received['HTTP_X_IDENTITY_STATUS'])
            self.send('unknown')
            self.assertEqual('Invalid', self.received['HTTP_X_IDENTITY_STATUS'])
            self.send('a', 'unknown')
            self.assertEqual('Invalid', self.received['HTTP_X_SERVICE_IDENTITY_STATUS'])
        self.assertEqual(8, self.validations())

    def test_requests_without_x_auth_token(self):
        for _ in range(2):
            self.assertEqual(200, self.send(None, HTTP_X_STORAGE_TOKEN='a'))
            self.assertEqual(401, self.send(None))
            self.assertEqual(401, self.send(''))
            self.assertEqual(200, self.send(None, path='/'))
        self.assertEqual(2, self.validations())

    def test_rejected_tokens_and_failures_of_keystone(self):
        metrics = self.useFixture(SwitchedOn())
        self.assertEqual([401, 401], [self.send('b') for _ in range(2)])
        self.keystone.before_response = mock.Mock(side_effect=keystone_exc.ConnectFailure('down'))
        self.assertEqual([503, 503], [self.send('a') for _ in range(2)])
        self.keystone.before_response = lambda: None
        self.assertEqual([200, 200], [self.send('a'), self.send(self.keystone.issue('b'))])
        self.assertEqual(6, self.validations())
        self.assertEqual(
            {'accepted': 2, 'rejected': 2, 'unavailable': 2},
            metrics.increased('placement_token_validations_total'),
        )
        self.assertEqual(6, metrics.value('placement_token_validation_duration_seconds_count'))

    def test_the_cache_of_the_operator(self):
        """The age of the data in it is not known, so the process does not remember them."""
        kept: dict[str, Any] = {}
        cache = mock.Mock(get=kept.get, set=lambda key, data, time: kept.update({key: data}))
        self.start(cache='operator.cache')
        for number in (1, 1):
            self.assertEqual(200, self.send('a', **{'operator.cache': cache}))
            self.assertEqual(number, len(self.keystone.validated))
        kept.clear()
        self.assertEqual(200, self.send('a', **{'operator.cache': cache}))
        # The other middleware is missing.
        self.start(cache='operator.cache')
        self.assertEqual([200, 200], [self.send('a') for _ in range(2)])
        self.assertEqual(4, self.validations())


class RandomTokensTest(TokenCase):
    """Clients send many different tokens. PLACEMENT_TEST_TOKENS is their number."""

    def test_the_memory_does_not_grow(self):
        number = int(os.environ.get(VARIABLE, '200'))
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for known in (False, True):
            self._send(100, known)
            before = self._traced()
            self._send(number, known)
            self.assertLess(self._traced() - before, 100_000)

    def _send(self, number: int, known: bool) -> None:
        for _ in range(number):
            token = uuid.uuid4().hex
            if known:
                self.keystone.issue(token)
            self.assertEqual(200 if known else 401, self.send(token))
            self.keystone.validated.clear()
            if known:
                self.keystone.revoke(token)

    def _traced(self) -> int:
        """Return the size of all objects that were created since the start, in bytes."""
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
