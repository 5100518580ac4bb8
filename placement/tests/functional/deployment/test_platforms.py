"""The page `doc/source/install/platforms.rst`, with the directories of Red Hat on this machine."""

from collections.abc import Mapping
import re
import subprocess

from placement.tests import where
from placement.tests.functional.db import runbook
from placement.tests.functional.deployment import base, files
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands

PAGE = 'install/platforms.rst'
GUIDE = files.ETC.parent / 'doc' / 'source'
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
        (modules,) = re.findall(
            r'^    a2enmod (.+)$', (GUIDE / 'install' / 'production.rst').read_text(), re.MULTILINE
        )
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
