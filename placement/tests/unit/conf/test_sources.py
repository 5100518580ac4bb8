"""The configuration files that the service and the commands read."""

import contextlib
import io
import pathlib
import traceback
from unittest import mock

import fixtures
from oslo_config import cfg
from oslotest import base

from placement import conf
from placement.conf import authtoken, sources

CONNECTION = '[placement_database]\nconnection = sqlite:///{}\n'


class ReadTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.set('OS_PLACEMENT_DATABASE__CONNECTION', None)
        self.set(sources.CONFIG_DIR, str(self.folder))
        self.write('placement.conf', CONNECTION.format('variable'))

    def set(self, name: str, value: str | None) -> None:
        self.useFixture(fixtures.EnvironmentVariable(name, value))

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def connection(self, *arguments: str) -> str:
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        sources.read(config, arguments, 'placement-manage')
        return config.placement_database.connection

    def test_the_variable_names_the_directory(self):
        self.assertEqual('sqlite:///variable', self.connection())

    def test_other_directories(self):
        self.set(sources.CONFIG_DIR, f' {self.folder} ')
        self.assertEqual('sqlite:///variable', self.connection())
        self.set('OS_PLACEMENT_DATABASE__CONNECTION', 'sqlite:///there')
        self.assertEqual('sqlite:///there', self.connection())
        # A blank variable selects the default directories.
        self.set(sources.CONFIG_DIR, '  ')
        with mock.patch.object(cfg, 'find_config_files', return_value=[]) as find:
            self.assertEqual('sqlite:///there', self.connection())
        self.assertEqual('placement', find.call_args.args[0])
        self.set(sources.CONFIG_DIR, str(self.folder / 'none'))
        self.assertRaises(cfg.ConfigFilesNotFoundError, self.connection)

    def test_the_command_line_takes_precedence(self):
        path = self.write('other.conf', CONNECTION.format('file'))
        self.assertEqual('sqlite:///file', self.connection('--config-file', path))
        self.assertEqual('sqlite:///file', self.connection(f'--config-file={path}'))
        (self.folder / 'placement.conf').unlink()
        self.assertEqual('sqlite:///file', self.connection('--config-dir', str(self.folder)))

    def test_a_missing_option_names_the_files(self):
        path = self.write('placement.conf', '')
        error = self.assertRaises(sources.MissingOption, self.connection)
        self.assertEqual(('connection', (path,)), (error.opt_name, error.files))

    def test_an_invalid_value_of_the_log_raises(self):
        """oslo.config exits, and uWSGI would start the exited process again, without end."""
        self.write('placement.conf', '[DEFAULT]\ndebug = maybe\n' + CONNECTION.format('x'))
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            error = self.assertRaises(cfg.ConfigFileValueError, self.connection)
        self.assertEqual('', output.getvalue())
        self.assertIn('[DEFAULT] debug is not valid: ', str(error))

    def test_other_exits_are_not_changed(self):
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            self.assertRaises(SystemExit, self.connection, '--unknown')
        self.assertIn('--unknown', output.getvalue())


class ReferenceTest(base.BaseTestCase):
    """A `$` in a value refers to another option."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config = cfg.ConfigOpts()
        self.config.register_opts([cfg.StrOpt('host'), cfg.IntOpt('number')])
        self.config.register_opts([cfg.StrOpt('first'), cfg.StrOpt('second')], group='a_group')

    def parse(self, *texts: str) -> list[str]:
        """Parse configuration files and return their paths."""
        paths = []
        for number, text in enumerate(texts):
            paths.append(str(self.folder / f'{number}.conf'))
            pathlib.Path(paths[-1]).write_text(text)
        self.config([], default_config_files=paths, default_config_dirs=[])
        return paths

    def problem(self, name: str = 'second') -> str:
        """Return the text of the exception for an option, with its traceback."""
        try:
            with sources.explaining_references(self.config):
                _ = self.config.a_group[name]
        except sources.UnresolvedReference as error:
            self.assertNotIn('SECRET', traceback.format_exc())
            return str(error)
        return ''

    def test_each_kind_of_reference(self):
        for value in ('x$SECRET', '${SECRET}', 'x$a_group', '$SECRET.x', '${a_group.SECRET}'):
            (path,) = self.parse(f'[DEFAULT]\nnumber = x\n[A_GROUP]\nfirst = 1\nsecond = {value}\n')
            self.assertEqual(
                f'The value of [a_group] second in {path} contains $ and not the name of an option '
                'after it. Write $$ for a dollar sign.',
                self.problem(),
            )

    def test_the_last_file_counts(self):
        paths = self.parse('[a_group]\nsecond = $SECRET\n' * 2, '[a_group]\nsecond = $SECRET\n')
        self.assertIn(paths[1], self.problem())

    def test_the_environment_takes_precedence(self):
        self.parse('[a_group]\nsecond = $SECRET\n')
        name = 'OS_A_GROUP__SECOND'
        self.useFixture(fixtures.EnvironmentVariable(name, 'x$SECRET'))
        self.assertIn(f' in the environment variable {name} contains ', self.problem())

    def test_references_to_options(self):
        self.parse('[DEFAULT]\nhost = h\n[a_group]\nfirst = $host\nsecond = ${first}$$\n')
        self.assertEqual('', self.problem())
        self.assertEqual('h$', self.config.a_group.second)

    def test_a_defect_is_not_explained(self):
        self.parse('')
        self.assertRaises(cfg.NoSuchOptError, self.problem, 'third')


class AuthtokenTest(base.BaseTestCase):
    def validate(self, **values: object) -> None:
        authtoken.validate(self.configuration(**values))

    def configuration(self, **values: object) -> cfg.ConfigOpts:
        config = cfg.ConfigOpts()
        options = [
            cfg.StrOpt('auth_type', default='password'),
            cfg.StrOpt('auth_section'),
            cfg.ListOpt('memcached_servers'),
            cfg.StrOpt('cache'),
            cfg.IntOpt('token_cache_time', default=300),
            cfg.StrOpt('memcache_security_strategy', default='None'),
            cfg.StrOpt('memcache_secret_key'),
        ]
        config.register_opts(options, group=authtoken.GROUP)
        config.register_opt(cfg.StrOpt('auth_type'), group='section')
        config([], default_config_files=[], default_config_dirs=[])
        for name, value in values.items():
            config.set_override(name, value, group=authtoken.GROUP)
        return config

    def test_valid(self):
        self.validate()

    def test_auth_type_is_required(self):
        error = self.assertRaises(sources.MissingOption, self.validate, auth_type=None)
        self.assertEqual(authtoken.GROUP, error.group)

    def test_auth_section_names_the_group(self):
        error = self.assertRaises(sources.MissingOption, self.validate, auth_section='section')
        self.assertEqual('section', error.group)

    def test_a_strategy_requires_a_secret(self):
        for strategy in ('MAC', 'encrypt'):
            values = {'memcache_security_strategy': strategy}
            for secret in (None, ''):
                error = self.assertRaises(
                    sources.MissingOption, self.validate, memcache_secret_key=secret, **values
                )
                self.assertEqual('memcache_secret_key', error.opt_name)
            self.validate(memcache_secret_key='x', **values)

    def test_addresses_of_memcached(self):
        for text, expected in (
            ('cache:1', ('cache', 1)),
            ('cache', ('cache', 11211)),
            ('192.0.2.1:1', ('192.0.2.1', 1)),
            ('inet:cache:1', ('cache', 1)),
            ('[2001:db8::1]:1', ('2001:db8::1', 1)),
            ('inet6:[2001:db8::1]:1', ('2001:db8::1', 1)),
            ('inet6:[2001:db8::1]', ('2001:db8::1', 11211)),
            ('2001:db8::1', ('2001:db8::1', 11211)),
            ('/run/memcached', '/run/memcached'),
            ('unix:/run/memcached', '/run/memcached'),
        ):
            config = self.configuration(memcached_servers=['first', text])
            servers = authtoken.memcached_servers(config)
            self.assertEqual({'first': ('first', 11211), text: expected}, servers)
            self.validate(memcached_servers=[text])

    def test_invalid_addresses_of_memcached(self):
        for text in (
            'cache:x',
            ':1',
            'cache:70000',
            'http://cache:1',
            'a/b',
            'unix:a',
            '',
        ):
            error = self.assertRaises(ValueError, self.validate, memcached_servers=[text])
            self.assertIn(f'contains {text}, which is not the address', str(error))
            self.validate(memcached_servers=[text], cache='swift.cache')
