"""The page `doc/source/install/platforms.rst`, with other directories."""

import subprocess

from placement.tests import where
from placement.tests.functional.db import runbook
from placement.tests.functional.deployment import base, files
from placement.tests.functional.web import commands

PAGE = 'install/platforms.rst'
SHARE = '/opt/placement/share/placement'
FILES = ('uwsgi/placement.ini', 'systemd/placement.service', 'apache2/placement-uwsgi.conf')


@where.at_night('The test needs systemd.')
class RedHatTest(base.TestCase):
    def test_the_commands_adapt_the_files(self) -> None:
        """Systemd accepts the unit, and the files name the group and the directories of Apache."""
        analyze = commands.program('systemd-analyze')
        share, root, etc = (self.folder / name for name in ('share', 'httpd', 'etc'))
        for name in FILES:
            path = share / name
            path.parent.mkdir(parents=True)
            values = files.programs(name) if name.startswith('systemd') else {}
            path.write_text(files.read(name, values))
        for folder in (etc, root / 'conf.d', root / 'conf.modules.d', self.folder / 'shell'):
            folder.mkdir(parents=True)
        (etc / 'placement.key').write_text('')
        shell = runbook.Shell(self.folder / 'shell', '')
        httpd = shell.folder / 'bin' / 'httpd'
        httpd.write_text('#!/bin/sh\nexit 0\n')
        httpd.chmod(0o755)
        replaced = {
            'Service': {
                '/etc/placement/uwsgi.ini': f'{etc}/uwsgi.ini',
                '/etc/systemd/system': str(etc),
            },
            'Web server': {
                '/etc/placement/tls': str(etc),
                '/etc/httpd': str(root),
                '$PLACEMENT_HOST': 'api.example.net',
            },
        }
        for section, values in replaced.items():
            (block,) = runbook.blocks(PAGE, section)
            shell.run(block, {SHARE: str(share), **values})
        configuration, unit = etc / 'uwsgi.ini', etc / 'placement.service'
        self.assertIn('\nchown-socket = placement:apache\n', configuration.read_text())
        self.assertIn('\nSupplementaryGroups=apache\n', unit.read_text())
        site = (root / 'conf.d' / 'placement.conf').read_text()
        self.assertIn('api.example.net', site)
        self.assertIn('/var/log/httpd', site)
        for text in (configuration.read_text(), unit.read_text(), site):
            self.assertNotRegex(text, r'www-data|placement\.example\.org|/var/log/apache2')
        verified = subprocess.run((analyze, 'verify', unit), capture_output=True, text=True)
        self.assertEqual((0, ''), (verified.returncode, verified.stderr))
