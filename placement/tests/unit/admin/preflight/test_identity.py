"""Checks of Keystone, of the token cache, and of the metrics."""

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
from placement.admin.preflight.model import Result

OK, WARNING, FAILURE = Result.OK, Result.WARNING, Result.FAILURE


class OptionsTest(base.BaseTestCase):
    GOOD = identity.AuthOptions(
        plugin='password',
        plugin_exists=True,
        uri='http://keystone',
        needs_secret=False,
        has_secret=False,
        roles_required=True,
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
            verdict = identity.judge_endpoint('auth_url', 'http://keystone', status, 'down')
            self.assertEqual(expected, verdict.result, status)
        self.assertIn('down', verdict.detail)

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

    def test_catalog(self):
        self.assertEqual(WARNING, identity.judge_catalog([]).result)
        verdict = identity.judge_catalog(['public http://b', 'internal http://a'])
        self.assertEqual(OK, verdict.result)
        self.assertIn('internal http://a; public http://b', verdict.detail)


class TokenCacheTest(base.BaseTestCase):
    def test_servers(self):
        self.assertEqual(OK, token_cache.judge_server('a:11211', True).result)
        self.assertEqual(WARNING, token_cache.judge_server('a:11211', False).result)

    def test_missing_libraries(self):
        verdict = token_cache.judge_library(['a', 'b'])
        self.assertEqual(FAILURE, verdict.result)
        self.assertIn('pip install a b', verdict.remedy)


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
