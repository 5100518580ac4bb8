"""The memory of validated tokens, with a Keystone in this process."""

from collections.abc import Iterator
from concurrent import futures
import gc
import logging
import os
import threading
import tracemalloc
from typing import Any
from unittest import mock
import uuid

import ddt
import fixtures
from keystoneauth1 import exceptions as keystone_exc
from oslotest import base

from placement import auth, token_memory
from placement.telemetry import declarations
from placement.tests.unit import edge, identity
from placement.tests.unit.identity import CACHE_TIME
from placement.tests.unit.telemetry.switched_on import SwitchedOn

THREADS = 100
# In seconds: only a defect makes a thread wait so long.
LIMIT = 60
VARIABLE = 'PLACEMENT_TEST_TOKENS'
RULES = [{'id': '1', 'method': 'GET', 'path': '/traits', 'service': 'placement'}]
FORGED = {
    'HTTP_X_ROLES': 'forged',
    'HTTP_X_USER_ID': 'forged',
    'HTTP_X_PROJECT_ID': 'forged',
    'HTTP_X_SERVICE_ROLES': 'forged',
    'HTTP_X_SERVICE_IDENTITY_STATUS': 'Confirmed',
    'HTTP_X_SERVICE_CATALOG': 'forged',
    'HTTP_OPENSTACK_SYSTEM_SCOPE': 'all',
}


class TokenCase(base.BaseTestCase):
    """Requests to the middleware, at the time of a clock that the test sets."""

    def setUp(self):
        super().setUp()
        # keystonemiddleware logs each rejected token.
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL + 1))
        self.clock = identity.Clock()
        for module in (auth, token_memory):
            self.useFixture(fixtures.MockPatchObject(module, 'time', self.clock))
        self.keystone = identity.Keystone(self.clock)
        self.received: dict[str, Any] = {}
        self.layer = self.middleware()

    def middleware(self, *args: Any, **options: Any) -> auth.KeystoneMiddleware:
        return identity.middleware(self._inside, self.keystone, *args, **options)

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
        tokens = {'HTTP_X_AUTH_TOKEN': token, 'HTTP_X_SERVICE_TOKEN': service}
        sent = {name: value for name, value in tokens.items() if value is not None}
        environ = edge.environ(method, path, **sent, **more)
        return edge.call(self.layer, environ).status

    def identity(self) -> dict[str, Any]:
        """Return the identity headers of the last request."""
        return {name: self.received[name] for name in auth._REMEMBERED if name in self.received}

    def validations(self) -> int:
        """Return the number of validations since the last call."""
        number = len(self.keystone.validated)
        self.keystone.validated.clear()
        return number


class KnownTokenTest(TokenCase):
    """A token that the process has validated."""

    def test_it_is_validated_once(self):
        self.keystone.issue('a')
        self.assertEqual([200] * 3, [self.send('a') for _ in range(3)])
        self.assertEqual(['a'], self.keystone.validated)

    def test_white_space_around_a_token_makes_no_other_token(self):
        """Otherwise, one client could replace the tokens of all others in the memory."""
        self.keystone.issue('a')
        for token in ('a', ' a', 'a\xa0', '\x1fa\x85'):
            self.assertEqual(200, self.send(token))
        self.assertEqual(1, self.validations())
        self.keystone.issue('s', roles=('service',))
        for service in ('s', 's ', '\xa0s'):
            self.assertEqual(200, self.send('a', service))
        self.assertEqual(['s', 'a'], self.keystone.validated)
        # keystonemiddleware rejects such a service token, which is not an absent one.
        self.assertEqual([401, 401], [self.send('a', ' ') for _ in range(2)])

    def test_the_headers_are_those_of_the_first_request(self):
        system = {'system': {'all': True}, 'project': None}
        domain = {'domain': {'id': 'd', 'name': 'D'}, 'project': None}
        self.keystone.issue('service', roles=('service',))
        for name, scope in (('project', {}), ('system', system), ('domain', domain)):
            members = {key: value for key, value in scope.items() if value is not None}
            self.keystone.issue(name, roles=('admin', 'member'), **members)
            for service in (None, 'service'):
                self.assertEqual(200, self.send(name, service))
                first = self.identity()
                self.assertEqual(f'user-{name}', first['HTTP_X_USER_ID'])
                self.assertEqual(service is not None, 'HTTP_X_SERVICE_ROLES' in first)
                self.validations()
                self.assertEqual(200, self.send(name, service))
                self.assertEqual(first, self.identity())
                self.assertEqual(0, self.validations())

    def test_the_catalog_and_the_data_of_the_token_are_absent(self):
        self.keystone.issue('a')
        absent = {'HTTP_X_SERVICE_CATALOG', 'keystone.token_info', 'keystone.token_auth'}
        for expected in (absent, set()):
            self.send('a')
            self.assertEqual(expected, absent & self.received.keys())

    def test_headers_of_the_client_have_no_effect(self):
        self.keystone.issue('a', roles=('reader',))
        self.send('a')
        expected = self.identity()
        for forged in (FORGED, dict.fromkeys(auth._IDENTITY, 'forged')):
            self.assertEqual(200, self.send('a', **forged))
            self.assertEqual(expected, self.identity())
            self.assertNotIn('HTTP_X_SERVICE_CATALOG', self.received)
        self.assertEqual(1, self.validations())

    def test_the_first_request_has_forged_headers(self):
        self.keystone.issue('a', roles=('reader',))
        self.send('a', **FORGED)
        self.assertEqual('reader', self.identity()['HTTP_X_ROLES'])
        self.send('a')
        self.assertEqual('reader', self.identity()['HTTP_X_ROLES'])
        self.assertNotIn('HTTP_X_SERVICE_ROLES', self.received)
        self.assertIsNone(self.received['HTTP_OPENSTACK_SYSTEM_SCOPE'])

    def test_other_methods_and_paths(self):
        self.keystone.issue('a')
        self.send('a')
        self.assertEqual(200, self.send('a', path='/usages', method='PUT'))
        self.assertEqual('/usages', self.received['PATH_INFO'])
        self.assertEqual(1, self.validations())

    def test_responses_are_those_of_the_application(self):
        def application(environ, start_response):
            location = 'http://host/x'
            start_response('404 Not Found', [('Location', location), ('Content-Length', '0')])
            return []

        self.layer = identity.middleware(application, self.keystone)
        self.keystone.issue('a')
        for method in ('GET', 'HEAD', 'DELETE'):
            sent = edge.environ(method, '/traits', HTTP_X_AUTH_TOKEN='a')
            responses = [edge.call(self.layer, dict(sent)) for _ in range(2)]
            self.assertEqual(404, responses[0].status)
            self.assertEqual(*responses)

    def test_the_least_recently_used_token_is_dropped(self):
        self.layer = self.middleware(token_memory=2)
        for token in ('a', 'b', 'a', 'c', 'a', 'b'):
            self.send(self.keystone.issue(token))
        self.assertEqual(['a', 'b', 'c', 'b'], self.keystone.validated)

    def test_no_text_of_a_token_is_kept(self):
        tokens = [self.keystone.issue(uuid.uuid4().hex) for _ in range(2)]
        # These headers contain the names of the users, which contain the tokens.
        for token in tokens:
            self.keystone._tokens[token]['user'] = {'id': 'u', 'name': 'u', 'domain': {'id': 'd'}}
            self.keystone._tokens[token]['project'] |= {'id': 'p'}
            self.keystone._tokens[token]['user']['domain']['name'] = 'D'
        self.send(*tokens)
        self.send(*tokens)
        self.assertEqual(200, self.send(tokens[0]))
        texts = [str(value) for value in reachable(self.layer.guarded._memory)]
        self.assertIn('u', texts)
        for token in tokens:
            self.assertFalse([text for text in texts if token in text])


def reachable(root: object) -> Iterator[object]:
    """Yield the texts and bytes to which an object refers, without those of code."""
    seen, pending = set(), [root]
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, (str, bytes)):
            yield one
        pending.extend(gc.get_referents(one))


class EndTest(TokenCase):
    """A verdict ends."""

    def assert_valid_for(self, seconds: float, *tokens: str) -> None:
        """Check that a request is accepted until a time from now, and rejected from then on."""
        self.clock.advance(seconds - 0.5)
        self.assertEqual(200, self.send(*tokens))
        self.assertEqual(0, self.validations())
        self.clock.advance(0.5)
        self.assertEqual(401, self.send(*tokens))
        self.assertLessEqual(1, self.validations())

    def test_a_revoked_token(self):
        self.send(self.keystone.issue('a'))
        self.validations()
        self.keystone.revoke('a')
        self.assert_valid_for(CACHE_TIME, 'a')

    def test_uses_do_not_prolong_a_verdict(self):
        self.send(self.keystone.issue('a'))
        self.keystone.revoke('a')
        statuses = []
        for _ in range(7):
            self.clock.advance(50)
            statuses.append(self.send('a'))
        self.assertEqual([200] * 5 + [401] * 2, statuses)

    def test_the_time_is_that_before_the_response_of_keystone(self):
        self.keystone.before_response = lambda: self.clock.advance(100)
        self.send(self.keystone.issue('a'))
        self.validations()
        self.keystone.revoke('a')
        self.assert_valid_for(CACHE_TIME - 100, 'a')

    def test_the_older_verdict_counts(self):
        self.keystone.issue('a')
        self.keystone.issue('s', roles=('service',))
        self.keystone.before_response = lambda: self.clock.advance(100)
        self.send('a', 's')
        self.validations()
        self.keystone.revoke('s')
        self.keystone.before_response = lambda: None
        self.assert_valid_for(CACHE_TIME - 200, 'a', 's')

    def test_a_validation_is_shared_while_keystone_does_not_respond(self):
        """A request with two tokens waits for the verdict on its second one."""
        self.keystone.issue('a')
        self.keystone.issue('s', roles=('service',))
        statuses = []

        def respond_late() -> None:
            if self.keystone.validated[-1] == 'a':
                self.keystone.before_response = lambda: None
                self.keystone.revoke('s')
                for _ in range(2):
                    statuses.append(self.send('s'))
                    self.clock.advance(CACHE_TIME)

        self.keystone.before_response = respond_late
        self.send('a', 's')
        self.assertEqual([200, 401], statuses)
        self.assertEqual({}, self.layer.guarded._validations._running)

    def test_a_token_expires(self):
        self.send(self.keystone.issue('a', lifetime=60))
        self.validations()
        self.assert_valid_for(60, 'a')

    def test_the_service_token_expires_first(self):
        self.keystone.issue('a')
        self.keystone.issue('s', lifetime=60, roles=('service',))
        self.send('a', 's')
        self.validations()
        self.assert_valid_for(60, 'a', 's')

    def test_a_demoted_user(self):
        self.send(self.keystone.issue('a', roles=('admin', 'reader')))
        self.keystone.issue('a', roles=('reader',))
        self.clock.advance(CACHE_TIME - 1)
        self.send('a')
        self.assertEqual('admin,reader', self.identity()['HTTP_X_ROLES'])
        self.clock.advance(1)
        self.send('a')
        self.assertEqual('reader', self.identity()['HTTP_X_ROLES'])

    def test_the_clock_is_set_back(self):
        self.keystone.before_response = lambda: self.clock.advance(100)
        self.send(self.keystone.issue('a'))
        self.keystone.revoke('a')
        self.clock.set(-3600)
        self.clock.advance(CACHE_TIME - 101)
        self.assertEqual(200, self.send('a'))
        self.clock.advance(1)
        self.assertEqual(401, self.send('a'))

    def test_the_machine_was_suspended(self):
        """The monotonic clock stood still meanwhile."""
        self.send(self.keystone.issue('a'))
        self.keystone.revoke('a')
        self.clock.set(CACHE_TIME)
        self.assertEqual(401, self.send('a'))

    def test_a_verdict_of_a_clock_that_is_ahead(self):
        store = mock.Mock(**{'get.return_value': None})
        self.layer = self.middleware(store)
        self.keystone.issue('a')
        data = self.keystone.verify_token('a')
        store.get.return_value = token_memory.Verdict(data, self.clock.time() + 2)
        self.send('a')
        store.get.return_value = None
        self.validations()
        self.keystone.revoke('a')
        self.assert_valid_for(CACHE_TIME, 'a')


class DependentTest(TokenCase):
    """Tokens whose validity depends on the request."""

    def test_access_rules(self):
        self.layer = self.middleware(service_type='placement')
        self.keystone.issue('a', application_credential={'id': 'x', 'access_rules': RULES})
        for _ in range(2):
            self.assertEqual(200, self.send('a'))
            self.assertEqual(401, self.send('a', method='PUT'))
            self.assertEqual(401, self.send('a', path='/usages'))
        self.assertEqual(6, self.validations())

    def test_access_rules_of_a_token_without_a_catalog(self):
        self.layer = self.middleware(service_type='placement', include_service_catalog=False)
        rules = {'id': 'x', 'access_rules': RULES}
        self.keystone.issue('a', application_credential=rules)
        del self.keystone._tokens['a']['catalog']
        self.assertEqual(401, self.send('a'))

    def test_access_rules_with_a_service_token(self):
        self.layer = self.middleware(service_type='placement')
        self.keystone.issue('a', application_credential={'id': 'x', 'access_rules': RULES})
        self.keystone.issue('s', roles=('service',))
        # keystonemiddleware does not check the rules of requests of services.
        self.assertEqual(200, self.send('a', 's', method='PUT'))
        self.assertEqual(401, self.send('a', method='PUT'))
        self.assertEqual(401, self.send('a', 'a', method='PUT'))

    def test_an_application_credential_without_access_rules(self):
        self.keystone.issue('a', application_credential={'id': 'x', 'restricted': True})
        self.assertEqual([200, 200], [self.send('a'), self.send('a', method='PUT')])
        self.assertEqual(1, self.validations())

    def test_a_bound_token(self):
        self.keystone.issue('a', bind={'kerberos': 'me'})
        bound = {'AUTH_TYPE': 'Negotiate', 'REMOTE_USER': 'me'}
        for _ in range(2):
            self.assertEqual(200, self.send('a', **bound))
            self.assertEqual(401, self.send('a', **bound | {'REMOTE_USER': 'you'}))
            self.assertEqual(401, self.send('a'))
        self.assertEqual(6, self.validations())

    def test_a_bound_service_token(self):
        self.keystone.issue('a')
        self.keystone.issue('s', roles=('service',), bind={'kerberos': 'me'})
        bound = {'AUTH_TYPE': 'Negotiate', 'REMOTE_USER': 'me'}
        for _ in range(2):
            self.assertEqual(200, self.send('a', 's', **bound))
            self.assertEqual(401, self.send('a', 's'))

    def test_an_expired_token_with_a_service_token(self):
        self.keystone.issue('a', lifetime=-60)
        self.keystone.issue('s', roles=('service',))
        for _ in range(2):
            self.assertEqual(200, self.send('a', 's'))
            self.assertEqual(401, self.send('a'))
        self.assertEqual(['s', 'a', 'a'] * 2, self.keystone.validated)

    def test_a_token_that_expires_with_a_service_token(self):
        self.keystone.issue('a', lifetime=60)
        self.keystone.issue('s', roles=('service',))
        self.send('a', 's')
        self.clock.advance(61)
        self.validations()
        # keystonemiddleware accepts the token again, because Keystone does.
        self.assertEqual([200, 200], [self.send('a', 's') for _ in range(2)])
        self.assertEqual(4, self.validations())
        self.assertEqual(401, self.send('a'))


@ddt.ddt
class ServiceTokenTest(TokenCase):
    def test_a_valid_service_token(self):
        self.keystone.issue('a')
        self.keystone.issue('s', roles=('service',))
        self.assertEqual([200, 200], [self.send('a', 's') for _ in range(2)])
        self.assertEqual('service', self.identity()['HTTP_X_SERVICE_ROLES'])
        self.assertEqual(['s', 'a'], self.keystone.validated)

    @ddt.data('expired', 'unknown', 'without the role')
    def test_an_invalid_service_token(self, service):
        self.keystone.issue('a')
        self.keystone.issue('expired', lifetime=-1, roles=('service',))
        self.keystone.issue('without the role')
        self.send('a')
        self.validations()
        for _ in range(2):
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

    def test_an_empty_service_token_is_none(self):
        self.keystone.issue('a')
        self.assertEqual([200, 200], [self.send('a'), self.send('a', '')])
        self.assertEqual(1, self.validations())


@ddt.ddt
class NotRememberedTest(TokenCase):
    """Tokens that are validated in each request."""

    @ddt.data({'token_cache_time': 0}, {'token_cache_time': -1}, {'token_memory': 0})
    def test_options_that_disable_the_memory(self, options):
        self.layer = self.middleware(**options)
        self.keystone.issue('a')
        self.assertEqual([200] * 3, [self.send('a') for _ in range(3)])
        self.assertEqual(3, self.validations())

    def test_delay_auth_decision(self):
        self.layer = self.middleware(delay_auth_decision=True)
        self.keystone.issue('a')
        for _ in range(2):
            self.assertEqual(200, self.send('a'))
            self.assertEqual('Confirmed', self.received['HTTP_X_IDENTITY_STATUS'])
            self.send('unknown')
            self.assertEqual('Invalid', self.received['HTTP_X_IDENTITY_STATUS'])
            self.send('a', 'unknown')
            self.assertEqual('Invalid', self.received['HTTP_X_SERVICE_IDENTITY_STATUS'])
        self.assertEqual(8, self.validations())

    def test_rejected_tokens(self):
        for _ in range(2):
            self.assertEqual(401, self.send('a'))
        self.assertEqual(2, self.validations())
        self.keystone.issue('a')
        self.assertEqual(200, self.send('a'))

    def test_failures_of_keystone(self):
        self.keystone.issue('a')
        self.keystone.before_response = mock.Mock(side_effect=keystone_exc.ConnectFailure('down'))
        self.assertEqual([503, 503], [self.send('a') for _ in range(2)])
        self.keystone.before_response = lambda: None
        self.assertEqual(200, self.send('a'))
        self.assertEqual(3, self.validations())

    def test_requests_without_x_auth_token(self):
        self.keystone.issue('a')
        for _ in range(2):
            self.assertEqual(200, self.send(None, HTTP_X_STORAGE_TOKEN='a'))
            self.assertEqual(401, self.send(None))
            self.assertEqual(401, self.send(''))
            self.assertEqual(200, self.send(None, path='/'))
        self.assertEqual(2, self.validations())


class CacheOfKeystonemiddlewareTest(TokenCase):
    def test_it_keeps_nothing(self):
        patched = 'keystonemiddleware.auth_token._cache._MemcacheClientPool'
        pool = self.useFixture(fixtures.MockPatch(patched)).mock
        self.layer = self.middleware(memcached_servers=['127.0.0.1:9'], token_memory=0)
        self.keystone.issue('a')
        self.assertEqual([200, 200], [self.send('a') for _ in range(2)])
        self.assertEqual(2, self.validations())
        pool.assert_not_called()

    def test_the_cache_of_the_operator(self):
        kept: dict[str, Any] = {}
        cache = mock.Mock(get=kept.get, set=lambda key, data, time: kept.update({key: data}))
        self.layer = self.middleware(cache='operator.cache')
        self.keystone.issue('a')
        for number in (1, 1):
            self.assertEqual(200, self.send('a', **{'operator.cache': cache}))
            self.assertEqual(number, len(self.keystone.validated))
        # The age of the data in this cache is not known, so the process does not remember them.
        kept.clear()
        self.assertEqual(200, self.send('a', **{'operator.cache': cache}))
        self.assertEqual(2, len(self.keystone.validated))

    def test_a_cache_of_the_operator_that_is_missing(self):
        self.layer = self.middleware(cache='operator.cache')
        self.keystone.issue('a')
        self.assertEqual([200, 200], [self.send('a') for _ in range(2)])
        self.assertEqual(2, self.validations())


class StoreTest(TokenCase):
    """Verdicts that several processes share."""

    def setUp(self):
        super().setUp()
        self.kept: dict[str, token_memory.Verdict] = {}
        self.store = mock.Mock(
            get=mock.Mock(side_effect=self.kept.get),
            set=mock.Mock(side_effect=self.kept.__setitem__),
        )
        self.layer = self.middleware(self.store)
        self.metrics = self.useFixture(SwitchedOn())

    def test_the_memory_comes_before_the_store_and_the_store_before_keystone(self):
        self.keystone.issue('a')
        for _ in range(2):
            self.assertEqual(200, self.send('a'))
        self.store.get.assert_called_once_with('a')
        self.assertEqual(['a'], list(self.kept))
        self.layer = self.middleware(self.store)
        self.assertEqual(200, self.send('a'))
        self.assertEqual('user-a', self.identity()['HTTP_X_USER_ID'])
        self.assertEqual(1, self.validations())
        self.assertEqual(
            {'memory': 1, 'memcached': 1}, self.metrics.increased(declarations.MEMORY_HITS)
        )

    def test_the_verdict_ends_at_its_own_time(self):
        self.send(self.keystone.issue('a'))
        self.clock.advance(200)
        self.layer = self.middleware(self.store)
        self.send('a')
        self.kept.clear()
        self.keystone.revoke('a')
        self.clock.advance(99)
        self.assertEqual(200, self.send('a'))
        self.clock.advance(1)
        self.assertEqual(401, self.send('a'))

    def test_refusals_are_not_stored(self):
        self.send('unknown')
        self.assertEqual({}, self.kept)

    def test_tokens_that_may_be_expired_are_neither_read_nor_written(self):
        self.keystone.issue('a', lifetime=-60)
        self.keystone.issue('s', roles=('service',))
        self.assertEqual(200, self.send('a', 's'))
        self.assertEqual(['s'], list(self.kept))
        self.assertEqual([mock.call('s')], self.store.get.mock_calls)

    def test_access_rules_of_a_stored_token(self):
        self.layer = self.middleware(self.store, service_type='placement')
        self.keystone.issue('a', application_credential={'id': 'x', 'access_rules': RULES})
        for _ in range(2):
            self.assertEqual(200, self.send('a'))
            self.assertEqual(401, self.send('a', method='PUT'))
        self.assertEqual(1, self.validations())

    def test_results_of_validations(self):
        self.keystone.issue('a')
        for token in ('a', 'b', 'a', 'c'):
            self.send(token)
        self.keystone.before_response = mock.Mock(side_effect=keystone_exc.ConnectFailure('down'))
        self.send('d')
        results = self.metrics.increased(declarations.VALIDATIONS)
        self.assertEqual({'accepted': 1, 'rejected': 2, 'unavailable': 1}, results)
        self.assertEqual(4, self.metrics.value(f'{declarations.VALIDATION_DURATION}_count'))


class ThreadsTest(TokenCase):
    """Many threads send requests with one new token."""

    def setUp(self):
        super().setUp()
        self.keystone.issue('a')
        self.waiting = threading.Semaphore(0)
        result = futures.Future.result

        def counted(future: futures.Future, *args: Any) -> Any:
            self.waiting.release()
            return result(future, *args)

        self.useFixture(fixtures.MockPatchObject(token_memory.Future, 'result', counted))

    def send_from_threads(self) -> list[int]:
        """Return the statuses of requests that arrive while Keystone validates the token."""

        def respond_when_all_wait() -> None:
            for _ in range(THREADS - 1):
                self.assertTrue(self.waiting.acquire(timeout=LIMIT))

        self.keystone.before_response = mock.Mock(side_effect=respond_when_all_wait)
        return self._send_all()

    def _send_all(self) -> list[int]:
        statuses: list[int] = []
        environ = edge.environ(path='/traits', HTTP_X_AUTH_TOKEN='a')
        threads = [
            threading.Thread(
                target=lambda: statuses.append(edge.call(self.layer, dict(environ)).status)
            )
            for _ in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        return statuses

    def test_one_validation(self):
        self.assertEqual([200] * THREADS, self.send_from_threads())
        self.assertEqual(1, self.validations())
        self.assertEqual({}, self.layer.guarded._validations._running)

    def test_threads_at_any_time(self):
        """Some requests arrive before, some while, and some after the token is validated."""
        self.assertEqual([200] * THREADS, self._send_all())
        self.assertEqual(1, self.validations())

    def test_a_request_between_the_memory_and_the_validation(self):
        """The memory does not contain the token, and then another request validates it."""
        fetch = self.layer.guarded.fetch_token

        def fetch_later(*args: Any, **options: Any) -> Any:
            patch.stop()
            self.assertEqual(200, self.send('a'))
            return fetch(*args, **options)

        patch = mock.patch.object(self.layer.guarded, 'fetch_token', fetch_later)
        patch.start()
        self.assertEqual(200, self.send('a'))
        self.assertEqual('user-a', self.identity()['HTTP_X_USER_ID'])
        self.assertEqual(1, self.validations())

    def test_a_failure_of_keystone_is_shared_and_not_remembered(self):
        self._fail(keystone_exc.ConnectFailure('down'), 503)

    def test_a_rejection_is_shared_and_not_remembered(self):
        self.keystone.revoke('a')
        self.assertEqual([401] * THREADS, self.send_from_threads())
        self.assertEqual(1, self.validations())
        self.keystone.before_response = lambda: None
        self.keystone.issue('a')
        self.assertEqual(200, self.send('a'))

    def _fail(self, failure: Exception, status: int) -> None:
        verify = self.keystone.verify_token

        def fail(token: str, allow_expired: bool) -> None:
            verify(token, allow_expired)
            raise failure

        with mock.patch.object(self.keystone, 'verify_token', fail):
            self.assertEqual([status] * THREADS, self.send_from_threads())
        self.assertEqual(1, self.validations())
        self.assertEqual({}, self.layer.guarded._validations._running)
        self.keystone.before_response = lambda: None
        self.assertEqual(200, self.send('a'))
        self.assertEqual(1, self.validations())

    def test_a_token_with_access_rules_is_checked_for_each_request(self):
        """The threads share the data of the token, and not the decision about a request."""
        self.layer = self.middleware(service_type='placement')
        self.keystone.issue('a', application_credential={'id': 'x', 'access_rules': RULES})
        self.keystone.before_response = lambda: self.assertTrue(self.waiting.acquire(timeout=LIMIT))
        with futures.ThreadPoolExecutor(2) as executor:
            get = executor.submit(self.send, 'a')
            put = executor.submit(self.send, 'a', method='PUT')
            self.assertEqual([200, 401], [get.result(LIMIT), put.result(LIMIT)])

    def test_an_expired_token_with_and_without_a_service_token(self):
        """Keystone decides differently about the same token."""
        self.keystone.issue('a', lifetime=-60)
        self.keystone.issue('s', roles=('service',))
        arrived, respond = threading.Event(), threading.Event()

        def hold() -> None:
            arrived.set()
            respond.wait(LIMIT)

        self.keystone.before_response = hold
        with futures.ThreadPoolExecutor(1) as executor:
            rejected = executor.submit(self.send, 'a')
            self.assertTrue(arrived.wait(LIMIT))
            self.keystone.before_response = lambda: None
            self.assertEqual(200, self.send('a', 's'))
            respond.set()
            self.assertEqual(401, rejected.result(LIMIT))


class BusyTest(TokenCase):
    """Threads of the web server wait for Keystone."""

    def setUp(self):
        super().setUp()
        self.respond = threading.Event()
        self.executor = futures.ThreadPoolExecutor(THREADS)
        self.addCleanup(self.executor.shutdown)
        self.addCleanup(self.respond.set)

    def start(self, threads: int | None) -> None:
        """Create the middleware in a web server with so many threads."""
        with mock.patch.object(auth, 'thread_count', return_value=threads):
            self.layer = self.middleware()

    def wait(self, number: int) -> list[futures.Future]:
        """Send requests with other tokens, for which Keystone does not respond."""
        arrived = threading.Semaphore(0)

        def hold() -> None:
            arrived.release()
            self.respond.wait(LIMIT)

        self.keystone.before_response = hold
        sent = [self.executor.submit(self.send, uuid.uuid4().hex) for _ in range(number)]
        for _ in sent:
            self.assertTrue(arrived.acquire(timeout=LIMIT))
        self.keystone.before_response = lambda: None
        return sent

    def test_the_last_thread_does_not_wait(self):
        self.start(threads=4)
        self.send(self.keystone.issue('known'))
        self.keystone.issue('a')
        sent = self.wait(3)
        self.clock.advance(token_memory.LONGEST_WAIT + 1)
        self.validations()
        for token in ('a', 'unknown', 'a'):
            environ = edge.environ(path='/traits', HTTP_X_AUTH_TOKEN=token)
            response = edge.call(self.layer, environ)
            self.assertEqual(503, response.status)
            self.assertEqual('1', response.headers['retry-after'])
        self.assertEqual(200, self.send('known'))
        self.assertEqual(0, self.validations())
        self.respond.set()
        self.assertEqual([401] * 3, [request.result(LIMIT) for request in sent])
        self.assertEqual(200, self.send('a'))
        self.assertEqual({}, self.layer.guarded._validations._waits)

    def test_a_cold_start(self):
        """All threads wait, but each for a short time only."""
        self.start(threads=4)
        self.wait(3)
        self.clock.advance(token_memory.LONGEST_WAIT)
        self.assertEqual(200, self.send(self.keystone.issue('a')))

    def test_a_thread_is_free(self):
        self.start(threads=4)
        self.wait(2)
        self.clock.advance(60)
        self.assertEqual(200, self.send(self.keystone.issue('a')))

    def test_requests_with_one_token(self):
        """Each of them waits for the same validation."""
        self.start(threads=2)
        self.keystone.issue('a')
        arrived = threading.Event()

        def hold() -> None:
            arrived.set()
            self.respond.wait(LIMIT)

        self.keystone.before_response = hold
        first = self.executor.submit(self.send, 'a')
        self.assertTrue(arrived.wait(LIMIT))
        self.clock.advance(60)
        self.assertEqual(503, self.send('a'))
        self.respond.set()
        self.assertEqual(200, first.result(LIMIT))

    def validate(self, seconds: float) -> None:
        """Send a request with a new token, which Keystone validates in so many seconds."""
        self.keystone.before_response = lambda: self.clock.advance(seconds)
        self.assertEqual(200, self.send(self.keystone.issue(uuid.uuid4().hex)))

    def test_one_validation_is_always_possible(self):
        for threads in (1, 2):
            self.start(threads)
            for _ in range(2):
                self.validate(token_memory.LONGEST_WAIT + 1)

    def test_the_last_validation_took_long(self):
        """The threads that wait have just begun to wait."""
        self.start(threads=4)
        for seconds, status in ((2, 503), (1, 200), (2, 503)):
            self.validate(seconds)
            sent = self.wait(3)
            self.assertEqual(status, self.send(self.keystone.issue('a')))
            self.respond.set()
            self.assertEqual([401] * 3, [request.result(LIMIT) for request in sent])
            self.respond.clear()
            self.keystone.revoke('a')
            self.clock.advance(CACHE_TIME)

    def test_the_number_of_threads_is_unknown(self):
        self.start(threads=None)
        self.wait(20)
        self.clock.advance(60)
        self.assertEqual(200, self.send(self.keystone.issue('a')))

    def test_a_token_that_was_validated_meanwhile(self):
        """It was unknown at the beginning of the request."""
        self.start(threads=2)
        self.send(self.keystone.issue('a'))
        self.wait(1)
        self.clock.advance(60)
        with mock.patch.object(self.layer.guarded, 'recall', return_value=None):
            self.assertEqual(200, self.send('a'))


class RandomTokensTest(TokenCase):
    """Clients send many different tokens. PLACEMENT_TEST_TOKENS is their number."""

    def test_the_memory_does_not_grow(self):
        number = int(os.environ.get(VARIABLE, '200'))
        for known in (False, True):
            self._send(100, known)
            before = self._traced(known)
            self._send(number, known)
            self.assertLess(self._traced(known) - before, 100_000)
        self.assertEqual(10, len(self.layer.guarded._memory._entries))

    def _send(self, number: int, known: bool) -> None:
        for _ in range(number):
            token = uuid.uuid4().hex
            if known:
                self.keystone.issue(token)
            self.assertEqual(200 if known else 401, self.send(token))
            self.keystone.validated.clear()
            if known:
                self.keystone.revoke(token)

    def _traced(self, known: bool) -> int:
        """Return the size of all objects that were created since the first call, in bytes."""
        if not tracemalloc.is_tracing():
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            self._send(20, known)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
