"""The tool that unpacks MySQL reports in one sentence why it cannot, and leaves nothing behind."""

import os
from pathlib import Path
import stat
from unittest import mock

import fixtures
from oslotest import base

from tools import mysql

_APT = """#!/bin/sh
case "$*" in
indextargets*) echo http://127.0.0.1/debian;;
{failing}) echo 'E: no network'; echo 'E: no files'; exit 100;;
esac
"""


class UnpackTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)
        self.cache = self.folder / 'cache'
        self.useFixture(fixtures.EnvironmentVariable(mysql.VARIABLE, str(self.cache / 'mysql')))
        self.useFixture(fixtures.MonkeyPatch('tools.mysql.KEYS', self.folder))
        mysql.root.cache_clear()
        self.addCleanup(mysql.root.cache_clear)

    def install(self, name: str, text: str) -> None:
        """Install a program that replaces the one of the system."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        search_path = f'{self.folder}{os.pathsep}{os.environ["PATH"]}'
        self.useFixture(fixtures.EnvironmentVariable('PATH', search_path))

    def check(self, reason: str) -> None:
        self.assertEqual(reason, str(self.assertRaises(mysql.UnavailableError, mysql.root)))
        self.assertLessEqual({path.name for path in self.cache.iterdir()}, {'mysql', 'mysql.lock'})

    def test_no_apt(self):
        self.useFixture(fixtures.EnvironmentVariable('PATH', str(self.folder)))
        self.check('apt-get or the package debian-archive-keyring is not installed')

    def test_failed_downloads(self):
        for failing in ('*update', '*install*'):
            self.install('apt-get', _APT.format(failing=failing))
            self.check('apt-get failed with 100: E: no network')

    def test_no_archive_of_debian(self):
        self.install('apt-get', '#!/bin/sh')
        self.check('apt-get has no lists of an archive of Debian')

    def test_packages_that_do_not_run(self):
        self.install('apt-get', _APT.format(failing='never'))
        self.check('the packages of Debian unstable do not run here')

    def test_a_folder_that_cannot_be_created(self):
        self.cache.write_text('a file')
        error = self.assertRaises(mysql.UnavailableError, mysql.root)
        self.assertIn('cannot be created', str(error))

    def test_an_incomplete_folder_is_replaced(self):
        incomplete = self.cache / 'mysql'
        (incomplete / 'usr').mkdir(parents=True)

        complete = mock.patch.object(
            mysql, '_is_complete', lambda path: not (path / 'usr').exists()
        )
        with complete, mock.patch.object(mysql, '_download', return_value=[]):
            self.assertEqual(incomplete, mysql.root())
        self.assertEqual([], list(incomplete.iterdir()))
