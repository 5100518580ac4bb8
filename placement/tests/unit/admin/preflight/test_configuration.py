"""Checks of the configuration: names, values, and settings for production."""

import os
import pathlib

import fixtures
from oslo_config import cfg
from oslotest import base

from placement import conf
from placement.admin.preflight import configuration, options
from placement.admin.preflight.model import Result
from placement.admin.preflight.options import Option, Source
from placement.conf import sources

KNOWN = [
    Option('DEFAULT', 'debug'),
    Option('api', 'auth_strategy', old_names=(('DEFAULT', 'auth_strategy'),)),
    Option('placement_database', 'connection', secret=True),
    Option('placement_database', 'max_pool_size'),
    Option('cors', 'allowed_origin'),
]


def in_file(**groups: list[str]) -> Source:
    return Source('a.conf', groups)


class NamesTest(base.BaseTestCase):
    def assertRemedies(self, expected: list[str], source: Source) -> None:
        verdicts = configuration.judge(source, KNOWN)
        self.assertEqual(expected, [verdict.remedy for verdict in verdicts])
        self.assertLessEqual({verdict.result for verdict in verdicts}, {Result.WARNING})

    def test_known_names(self):
        self.assertRemedies([], in_file(DEFAULT=['debug'], placement_database=['connection']))

    def test_group_names_are_case_insensitive(self):
        self.assertRemedies([], in_file(API=['auth_strategy']))

    def test_a_misspelled_option(self):
        source = in_file(placement_database=['conection'])
        self.assertRemedies(['Did you mean [placement_database] connection?'], source)
        detail = configuration.judge(source, KNOWN)[0].detail
        self.assertIn('a.conf: [placement_database] conection', detail)

    def test_an_option_of_another_group(self):
        self.assertRemedies(['Did you mean [placement_database] connection?'], in_file(
            DEFAULT=['connection']
        ))  # fmt: skip

    def test_an_option_that_resembles_no_other(self):
        self.assertRemedies(['Remove the option.'], in_file(api=['zzz']))

    def test_a_misspelled_group_is_one_warning_for_all_its_options(self):
        self.assertRemedies(
            ['Did you mean [placement_database]?'], in_file(database=['connection', 'x'])
        )

    def test_a_group_that_resembles_no_other(self):
        self.assertRemedies(['Remove the group.'], in_file(zzz=[]))

    def test_additional_groups_of_cors(self):
        self.assertRemedies([], Source('a.conf', {'cors.other': ['allowed_origin']}))

    def test_a_deprecated_name_has_an_effect_in_a_file_only(self):
        groups = {'DEFAULT': ['auth_strategy']}
        self.assertRemedies([], Source('a.conf', groups))
        self.assertRemedies(
            ['Did you mean [api] auth_strategy?'], Source(options.ENVIRONMENT, groups)
        )

    def test_variables_of_other_services(self):
        self.assertRemedies([], Source(options.ENVIRONMENT, {'zzz': ['connection']}))
        self.assertRemedies(
            ['Did you mean [placement_database]?'],
            Source(options.ENVIRONMENT, {'placment_database': ['connection']}),
        )


class DeprecatedTest(base.BaseTestCase):
    def test_an_old_name(self):
        verdicts = configuration.judge_deprecated(in_file(DEFAULT=['auth_strategy']), KNOWN)
        self.assertEqual(['Use [api] auth_strategy.'], [verdict.remedy for verdict in verdicts])
        self.assertIn('[DEFAULT] auth_strategy is deprecated', verdicts[0].detail)

    def test_an_option_that_a_later_release_removes(self):
        known = [Option('api', 'old', removal='Nobody uses it.')]
        verdicts = configuration.judge_deprecated(in_file(api=['old']), known)
        self.assertEqual(
            ['In a.conf: [api] old is deprecated. Nobody uses it.'],
            [verdict.detail for verdict in verdicts],
        )

    def test_current_names(self):
        self.assertEqual([], configuration.judge_deprecated(in_file(api=['auth_strategy']), KNOWN))


class ValuesTest(base.BaseTestCase):
    def test_valid_values(self):
        verdicts = configuration.judge_values(dict.fromkeys(KNOWN))
        self.assertEqual([Result.OK], [verdict.result for verdict in verdicts])
        self.assertIn('5 options', verdicts[0].detail)

    def test_invalid_values_do_not_reveal_secrets(self):
        errors = {KNOWN[3]: "'many' is\nno integer", KNOWN[2]: "'hush' is invalid", KNOWN[0]: None}
        details = [verdict.detail for verdict in configuration.judge_values(errors)]
        self.assertEqual(
            [
                "The value of [placement_database] max_pool_size is invalid: 'many' is no integer",
                'The value of [placement_database] connection is invalid.',
            ],
            details,
        )


class SettingsTest(base.BaseTestCase):
    def test_settings_for_tests_are_warnings(self):
        self.assertEqual(Result.WARNING, configuration.judge_authentication('noauth2').result)
        self.assertEqual(Result.OK, configuration.judge_authentication('keystone').result)
        self.assertEqual(Result.WARNING, configuration.judge_debug(True).result)
        self.assertEqual(Result.OK, configuration.judge_debug(False).result)

    def test_proxy_headers_are_a_note(self):
        for enabled, word in ((True, 'trusts'), (False, 'ignores')):
            verdict = configuration.judge_proxy_headers(enabled)
            self.assertEqual(Result.OK, verdict.result)
            self.assertIn(word, verdict.detail)

    def test_backends_of_health_checks(self):
        installed = {'placement_database', 'disable_by_file'}
        for backends, expected, word in (
            (['placement_database'], Result.OK, 'placement_database'),
            (['disable_by_file', 'placement_database'], Result.OK, 'disable_by_file'),
            (['placement_databse'], Result.FAILURE, 'placement_databse'),
            (['disable_by_file'], Result.WARNING, 'without the database'),
            ([], Result.WARNING, 'without the database'),
        ):
            verdict = configuration.judge_health(backends, installed)
            self.assertEqual(expected, verdict.result, backends)
            self.assertIn(word, verdict.detail)

    def test_files(self):
        self.assertIn('/a.conf, /b.conf', configuration.judge_files(['/a.conf', '/b.conf']).detail)
        self.assertIn('No file', configuration.judge_files([]).detail)


class OptionsTest(base.BaseTestCase):
    """The options of the service, read from a real file and from the environment."""

    def setUp(self):
        super().setUp()
        for name in [name for name in os.environ if name.startswith('OS_') and '__' in name]:
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def configure(self, text: str) -> cfg.ConfigOpts:
        path = self.folder / 'placement.conf'
        path.write_text(f'[placement_database]\nconnection = sqlite://\n{text}')
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config(['--config-file', str(path)], project='placement')
        options.register_libraries(config)
        return config

    def remedies(self, config: cfg.ConfigOpts) -> list[str]:
        return [verdict.remedy for verdict in configuration.check_names(config)]

    def test_options_of_libraries_are_known(self):
        config = self.configure(
            '[keystone_authtoken]\nauth_type = password\npassword = hush\nmemcached_servers = a\n'
            '[oslo_policy]\nenforce_new_defaults = true\n[cache]\nenabled = false\n'
            '[oslo_middleware]\nenable_proxy_headers_parsing = false\n[DEFAULT]\nlog_file = x\n'
        )
        self.assertEqual([''], self.remedies(config))

    def test_options_of_an_auth_plugin_in_another_group(self):
        config = self.configure(
            '[keystone_authtoken]\nauth_section = mine\n'
            '[mine]\nauth_type = password\npasword = hush\n'
        )
        self.assertEqual(['Did you mean [mine] password?'], self.remedies(config))

    def test_an_unknown_auth_plugin_does_not_stop_the_command(self):
        config = self.configure('[keystone_authtoken]\nauth_type = pasword\n')
        self.assertEqual([''], self.remedies(config))

    def test_variables(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_API__AUTH_STRATEGI', 'keystone'))
        self.useFixture(fixtures.EnvironmentVariable('OS_AUTH_URL', 'http://other'))
        self.assertEqual(['Did you mean [api] auth_strategy?'], self.remedies(self.configure('')))

    def test_files_of_a_directory(self):
        (self.folder / 'b.conf').write_text('[api]\nx = 1\n')
        (self.folder / 'a.conf').write_text('[api]\n')
        (self.folder / 'ignored.txt').write_text('[api]\ny = 1\n')
        (self.folder / 'c.conf').write_text('[placement_database]\nconnection = sqlite://\n')
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config(['--config-dir', str(self.folder)], project='placement')
        names = [pathlib.Path(path).name for path in sources.files(config)]
        self.assertEqual(['a.conf', 'b.conf', 'c.conf'], names[-3:])

    def test_values_of_libraries(self):
        config = self.configure(
            '[keystone_authtoken]\ntoken_cache_time = long\n'
            '[placement]\nallocation_candidates_generation_strategy = wide\n'
        )
        details = [verdict.detail for verdict in configuration.check_values(config)]
        self.assertEqual(2, len(details), details)
        for name in ('token_cache_time', 'allocation_candidates_generation_strategy'):
            self.assertEqual(1, sum(name in detail for detail in details), details)

    def test_real_deprecated_names(self):
        config = self.configure(
            '[DEFAULT]\nauth_strategy = keystone\n[keystone_authtoken]\nmemcache_servers = a\n'
        )
        remedies = [verdict.remedy for verdict in configuration.check_deprecated(config)]
        self.assertEqual(
            ['Use [api] auth_strategy.', 'Use [keystone_authtoken] memcached_servers.'],
            sorted(remedies),
        )
