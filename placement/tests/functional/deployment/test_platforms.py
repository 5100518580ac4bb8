"""The pages of other platforms and deployment tools.

`doc/source/install/platforms.rst` is tested with the directories of Red Hat on this machine, and
`doc/source/admin/distributions.rst` against the files in etc/.
"""

import argparse
from collections.abc import Mapping
import re
import subprocess

from oslo_config import cfg
from oslo_log import log

from placement.cmd import manage, status
from placement.conf import base as conf
from placement.conf import sources
from placement.tests import where
from placement.tests.functional.db import runbook
from placement.tests.functional.deployment import base, files
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands

PAGE = 'install/platforms.rst'
GUIDE = files.ETC.parent / 'doc' / 'source'
# The pages with the paths and packages of Debian.
DEBIAN = (
    *('install/production.rst', 'install/several-machines.rst', 'install/packaging.rst'),
    'admin/deployment.rst',
)
HOST = 'api.example.net'
SHARE = '/opt/placement/share/placement'

# The configuration of the packages httpd and mod_ssl of Red Hat, as far as it matters here.
HTTPD = """
ServerRoot {root}
ServerName localhost
PidFile {root}/pid
DefaultRuntimeDir {root}
Include conf.modules.d/*.conf
ErrorLog logs/error_log
IncludeOptional conf.d/*.conf
"""
MODULES = {
    '00-base.conf': (
        *('alias', 'authz_core', 'authz_host', 'env', 'headers', 'reqtimeout', 'socache_shmcb'),
    ),
    '00-mpm.conf': ('mpm_event',),
    '00-proxy.conf': ('proxy', 'proxy_http'),
    '00-ssl.conf': ('ssl',),
}
SSL = """
Listen 127.0.0.1:{port} https
<VirtualHost _default_:{port}>
    SSLEngine on
    SSLCertificateFile {tls}/placement.crt
    SSLCertificateKeyFile {tls}/placement.key
</VirtualHost>
"""


def text(name: str) -> str:
    return (GUIDE / name).read_text()


def shipped() -> dict[str, str]:
    """Return the files of etc/ that contain paths of the distribution."""
    folders = ('apache2', 'haproxy', 'logrotate.d', 'nginx', 'systemd', 'uwsgi')
    paths = [path for name in folders for path in (files.ETC / name).iterdir()]
    paths = [path for path in paths if path.name not in ('placement.wsgi', 'galera.cfg')]
    return {path.name: path.read_text() for path in paths}


def table() -> list[list[str]]:
    """Return the rows of the table of differences: subject, Debian, and Red Hat."""
    section = text(PAGE).partition('\nDifferences\n')[2].partition('\nRed Hat\n')[0]
    rows = re.findall(r'^(\S.*?)  +(``\S+``)  +(\S.*)$', section, re.MULTILINE)
    return [list(row) for row in rows]


class TableTest(base.TestCase):
    def test_debian_is_as_on_the_other_pages(self) -> None:
        pages = '\n'.join((*map(text, DEBIAN), *shipped().values()))
        names = [debian.strip('`') for _, debian, _ in table()]
        self.assertGreater(len(names), 15)
        self.assertEqual([], [name for name in names if name not in pages])

    def test_the_page_names_every_path_of_the_files(self) -> None:
        """Each path in a file is in the table, or in the list of those that are the same."""
        named = tuple(re.findall(r'``(/[\w./-]+)``', text(PAGE)))
        for path in files.ETC.glob('*/*'):
            if path.parent.name in ('apache2', 'haproxy', 'logrotate.d', 'nginx', 'uwsgi'):
                used = re.findall(r'(?<![\w.:>])/(?:etc|opt|run|var)/[\w./-]+', path.read_text())
                self.assertEqual([], [one for one in used if not one.startswith(named)], path.name)


@where.at_night('The servers take minutes.')
class RedHatTest(base.TestCase):
    """The commands of the page, with the directories of Red Hat below the one of the test."""

    def setUp(self) -> None:
        super().setUp()
        self.stack()
        self.root = self.folder / 'httpd'
        self.share = self.folder / 'share'
        folder = self.folder / 'shell'
        folder.mkdir()
        self.shell = runbook.Shell(folder, '')

    def install(self, name: str, values: Mapping[str, str]) -> None:
        """Write a file of etc/ to the directory from which the page copies it."""
        path = self.share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files.read(name, values))

    def execute(self, section: str, replaced: Mapping[str, str]) -> None:
        """Execute the commands of a section of the page."""
        (block,) = runbook.blocks(PAGE, section)
        self.shell.run(block, {SHARE: str(self.share), **replaced})

    def program(self) -> str:
        """Create the directories of the packages, and return the path of the program httpd."""
        for name in ('conf.d', 'conf.modules.d', 'logs'):
            (self.root / name).mkdir(parents=True)
        (self.root / 'modules').symlink_to(commands.apache_module('buffer').parent)
        (self.root / 'httpd.conf').write_text(HTTPD.format(root=self.root))
        for name, modules in MODULES.items():
            lines = (f'LoadModule {one}_module modules/mod_{one}.so\n' for one in modules)
            (self.root / 'conf.modules.d' / name).write_text(''.join(lines))
        program = self.shell.folder / 'bin' / 'httpd'
        program.write_text(
            f'#!/bin/sh\nexec {commands.apache_program()} -f {self.root}/httpd.conf "$@"\n'
        )
        program.chmod(0o755)
        return str(program)

    def start(self, program: str) -> machines.Worker:
        """Execute the commands for Apache, which include a check, and start it."""
        tls = str(self.servers.certificate.parent)

        def command(port: int) -> list[str]:
            (self.root / 'conf.d' / 'ssl.conf').write_text(SSL.format(port=port, tls=tls))
            values = {
                '*:443': f'*:{port}',
                '/etc/placement/tls': tls,
                '127.0.0.1:8778': f'127.0.0.1:{machines.free_port()}',
            }
            self.install('apache2/placement-uwsgi.conf', values)
            replaced = {
                '/etc/httpd': str(self.root),
                '/var/log/httpd': str(self.root / 'logs'),
                '/etc/placement/tls': tls,
                '$PLACEMENT_HOST': HOST,
            }
            self.execute('Web server', replaced)
            return [*commands.unprivileged(), program, '-D', 'FOREGROUND']

        return self.started(machines.Worker('', command, log=self.folder / 'httpd.log'))

    def test_apache(self) -> None:
        """The virtual host of Placement is the first one, and all modules are enabled."""
        program = self.program()
        client = self.client(self.start(program))
        statuses = {
            host: client.send('GET', '/', headers={'Host': host})[0]
            for host in (HOST, 'placement.example.org', 'other.example.org')
        }
        # uWSGI does not run.
        expected = {HOST: 503, 'placement.example.org': 421, 'other.example.org': 421}
        self.assertEqual(expected, statuses)
        self.assertTrue((self.root / 'logs' / 'placement.log').exists())
        enabled = subprocess.check_output((program, '-M'), text=True)
        (modules,) = re.findall(r'^    a2enmod (.+)$', text('install/production.rst'), re.MULTILINE)
        self.assertEqual([], [one for one in modules.split() if f'{one}_module' not in enabled])

    def test_service(self) -> None:
        """The files of uWSGI and systemd contain the group of Apache, and systemd accepts them."""
        analyze = commands.program('systemd-analyze')
        self.install('uwsgi/placement.ini', {})
        self.install('systemd/placement.service', files.programs('systemd/placement.service'))
        unit, configuration = self.folder / 'placement.service', self.folder / 'uwsgi.ini'
        replaced = {
            '/etc/placement/uwsgi.ini': str(configuration),
            '/etc/systemd/system/placement.service': str(unit),
        }
        self.execute('Service', replaced)
        self.assertEqual(['daemon-reload', 'enable --now placement'], self.shell.systemctl())
        self.assertIn('\nchown-socket = placement:apache\n', configuration.read_text())
        self.assertIn('\nSupplementaryGroups=apache\n', unit.read_text())
        for path in (configuration, unit):
            self.assertNotIn('www-data', path.read_text())
        verified = subprocess.run((analyze, 'verify', unit), capture_output=True, text=True)
        self.assertEqual((0, ''), (verified.returncode, verified.stderr))


class DistributionsTest(base.TestCase):
    def test_the_values_of_this_release(self) -> None:
        """The table contains the values of the files in etc/ and of the package."""
        section = text('admin/distributions.rst').partition('\nThis release\n')[2]
        rows = re.findall(r'^([A-Z].*?)  +.*?``(.+?)``', section.partition('\nWhat to')[0], re.M)
        uwsgi = files.read('uwsgi/placement.ini', {})
        unit = files.read('systemd/placement.service', {})
        balancer = files.read('haproxy/placement.cfg', {})
        prefix, application = re.findall(r'^mount = (.+)=(.+)$', uwsgi, re.M)[0]
        folder = f'/etc/{sources.PROJECT}'
        expected = {
            'User': re.findall(r'^User=(.+)$', unit, re.M)[0],
            'Port': re.findall(r'^http-socket = 127\.0\.0\.1:(\d+)$', uwsgi, re.M)[0],
            'Path prefix': prefix,
            'Configuration': f'{folder}/placement.conf',
            'Policy': f'{folder}/{conf.POLICY_FILE}',
            'Other directory': sources.CONFIG_DIR,
            'Log': 'log_file',
            'Health check': re.findall(rf' uri {prefix}(\S+)$', balancer, re.M)[0],
            'Application': application,
            'Script for web servers': 'placement-api',
            'Schema': 'placement-manage db sync',
            'Check': 'placement-status preflight',
        }
        self.assertEqual(expected, dict(rows))
        self.assertTrue((files.ETC.parent / 'bin' / 'placement-api').exists())
        for module, command in ((manage, ['db', 'sync']), (status, ['preflight'])):
            parser = argparse.ArgumentParser()
            module._add_commands(parser.add_subparsers())
            parser.parse_args(command)
        options = cfg.ConfigOpts()
        log.register_options(options)
        self.assertIn('log_file', options)
