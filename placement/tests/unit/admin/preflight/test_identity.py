"""Checks of Keystone, of the token cache, and of the metrics."""

from collections.abc import Mapping, Sequence
import dataclasses
import importlib.machinery
import sys
import types
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as auth_exceptions
from oslo_config import cfg
from oslotest import base

from placement.admin.preflight import identity, metrics, token_cache
from placement.admin.preflight.model import Result, Verdict

OK, WARNING, FAILURE = Result.OK, Result.WARNING, Result.FAILURE


class OptionsTest(base.BaseTestCase):
    GOOD = identity.AuthOptions(
        plugin='password',
        plugin_exists=True,
        uri='http://keystone',
        needs_secret=False,
        has_secret=False,
        roles_required=True,
        insecure=False,
    )

    def test_options(self):
        for change, expected in (
            ({}, [OK]),
            ({'plugin': None, 'plugin_exists': False}, [FAILURE]),
            ({'plugin': 'pasword', 'plugin_exists': False}, [FAILURE]),
            ({'uri': None}, [WARNING]),
            ({'needs_secret': True}, [FAILURE]),
            ({'needs_secret': True, 'has_secret': True}, [OK]),
            ({'roles_required': False}, [WARNING]),
            ({'insecure': True}, [WARNING]),
            ({'unreadable': (('cafile', '/no/ca'),)}, [FAILURE]),
            ({'uri': None, 'roles_required': False}, [WARNING, WARNING]),
        ):
            verdicts = identity.judge_options(dataclasses.replace(self.GOOD, **change))
            self.assertEqual(expected, [verdict.result for verdict in verdicts], change)


class TokenTest(base.BaseTestCase):
    def test_keystone_does_not_respond(self):
        timeout = auth_exceptions.ConnectTimeout('Request timed out')
        self.useFixture(
            fixtures.MonkeyPatch(
                'placement.admin.preflight.identity._access', mock.Mock(side_effect=timeout)
            )
        )
        config = cfg.ConfigOpts()
        for check in (identity.check_credentials, identity.check_catalog):
            (verdict,) = check(config)
            self.assertEqual(FAILURE, verdict.result)
            self.assertIn('Request timed out', verdict.detail)


class KeystoneTest(base.BaseTestCase):
    def test_endpoints(self):
        for status, expected in (
            (200, OK),
            (300, OK),
            (404, WARNING),
            (503, WARNING),
            (None, FAILURE),
        ):
            verdict = identity.judge_endpoint('auth_url', 'https://keystone', status, 'down')
            self.assertEqual(expected, verdict.result, status)
        self.assertIn('down', verdict.detail)

    def test_endpoints_without_tls(self):
        for url, expected in (
            ('https://keystone/v3', OK),
            ('http://keystone/v3', WARNING),
            ('HTTP://192.0.2.1:5000', WARNING),
            ('http://[2001:db8::1]:5000', WARNING),
            ('http://localhost:5000/v3', OK),
            ('http://127.0.0.5/v3', OK),
            ('http://[::1]:5000/v3', OK),
        ):
            verdict = identity.judge_endpoint('auth_url', url, 200)
            self.assertEqual(expected, verdict.result, url)

    def test_roles(self):
        for roles, expected in (
            (('service',), OK),
            (('admin', 'member'), OK),
            (('member',), WARNING),
            ((), WARNING),
        ):
            verdict = identity.judge_identity(identity.Identity('placement', 'service', roles))
            self.assertEqual(expected, verdict.result, roles)
            self.assertIn('User placement, project service', verdict.detail)

    def judge(
        self, endpoints: Sequence[tuple[str, str]], errors: Mapping[str, str], region: str | None
    ) -> list[Verdict]:
        listed = [identity.Endpoint(*endpoint) for endpoint in endpoints]
        return identity.judge_catalog(listed, errors, region)

    def test_catalog(self):
        endpoints = [('public', 'http://b'), ('internal', 'http://a')]
        (verdict,) = self.judge(endpoints, {'http://a': '', 'http://b': ''}, None)
        self.assertEqual(OK, verdict.result)
        self.assertIn('internal http://a; public http://b', verdict.detail)

    def test_endpoints_that_do_not_respond(self):
        endpoints = [('public', 'http://b'), ('internal', 'http://a'), ('admin', 'http://b')]
        verdicts = self.judge(endpoints, {'http://a': '', 'http://b': 'down'}, 'one')
        self.assertEqual([WARNING, WARNING], [verdict.result for verdict in verdicts])
        self.assertIn('admin http://b does not respond correctly: down', verdicts[0].detail)

    def test_missing_endpoints(self):
        for endpoints, region, fragment in (
            ([], None, '--region REGION placement public'),
            ([], 'one', '--region one placement public'),
            ([('public', 'http://b')], 'one', '--region one placement internal'),
        ):
            (verdict,) = self.judge(endpoints, {'http://b': ''}, region)
            self.assertEqual(WARNING, verdict.result)
            self.assertIn(fragment, verdict.remedy)


class TokenCacheTest(base.BaseTestCase):
    def test_servers(self):
        for address, error, has_tls, expected in (
            (('127.0.0.1', 11211), '', False, OK),
            (('localhost', 11211), '', False, OK),
            (('::1', 11211), '', False, OK),
            ('/run/memcached.sock', '', False, OK),
            (('cache', 11211), '', False, WARNING),
            (('192.0.2.1', 11211), '', False, WARNING),
            (('2001:db8::1', 11211), '', False, WARNING),
            (('cache', 11211), '', True, OK),
            (('127.0.0.1', 11211), 'refused', False, WARNING),
            (('cache', 11211), 'refused', True, WARNING),
        ):
            verdict = token_cache.judge_server('server', address, error, has_tls)
            self.assertEqual(expected, verdict.result, address)
            self.assertIn(error, verdict.detail)

    def test_unprotected_tokens(self):
        verdict = token_cache.judge_unprotected()
        self.assertEqual(FAILURE, verdict.result)
        self.assertIn('Remove [keystone_authtoken] memcached_servers', verdict.remedy)

    def test_a_missing_library(self):
        verdict = token_cache.judge_missing_encryption()
        self.assertEqual(WARNING, verdict.result)
        self.assertIn("`pip install 'openstack-placement[memcached]'`", verdict.remedy)


class MetricsTest(base.BaseTestCase):
    def check(self, library: types.ModuleType | None) -> Result:
        config = cfg.ConfigOpts()
        config.register_opts([cfg.BoolOpt('enabled', default=True)], group='metrics')
        config([], default_config_files=[], default_config_dirs=[])
        with mock.patch.dict(sys.modules, {'prometheus_client': library}):
            return metrics.check(config)[0].result

    def test_enabled(self):
        folder = self.useFixture(fixtures.TempDir()).path
        library = types.ModuleType('prometheus_client')
        library.__spec__ = importlib.machinery.ModuleSpec('prometheus_client', None)
        for directory, module, expected in (
            (None, None, FAILURE),
            (None, library, OK),
            (folder, library, OK),
            (f'{folder}/missing', library, WARNING),
        ):
            variable = fixtures.EnvironmentVariable('PROMETHEUS_MULTIPROC_DIR', directory)
            self.useFixture(variable)
            self.assertEqual(expected, self.check(module), (directory, module))

    def test_disabled(self):
        self.assertEqual(Result.SKIPPED, metrics.check(cfg.ConfigOpts())[0].result)

    def test_prerequisites(self):
        for installed, directory, writable, expected in (
            (True, None, False, OK),
            (True, '/run/placement', True, OK),
            (True, '/run/placement', False, WARNING),
            (False, None, False, FAILURE),
        ):
            verdict = metrics.judge(installed, directory, writable)
            self.assertEqual(expected, verdict.result, (installed, directory, writable))
