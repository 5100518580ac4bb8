"""Every kind of source tree builds the same files, with a version that pbr or setup.cfg defines."""

import configparser
import email
import os
import pathlib
import shutil
import subprocess
import sys

import fixtures
from oslotest import base

import placement
from placement.tests import where
from placement.tests.waiting import LONGEST

ROOT = pathlib.Path(placement.__file__).resolve().parents[1]
DATA = ('.css', '.html', '.ini', '.j2', '.js', '.json', '.mako', '.rst', '.txt', '.yaml')


@where.at_night('The builds take minutes.')
@where.only_on('sqlite', reason='No SQL statement is executed.')
class BuildTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        if not (ROOT / 'setup.py').exists() or shutil.which('git') is None:
            self.skipTest('the test needs the source tree and git')
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ('PBR_VERSION', 'OSLO_PACKAGE_VERSION', 'PYTHONPATH')
            and not name.startswith(('GIT_', 'COVERAGE_'))
        }
        self.environment |= {
            'GIT_CONFIG_GLOBAL': os.devnull,
            'GIT_CONFIG_NOSYSTEM': '1',
            'GIT_AUTHOR_NAME': 'Author',
            'GIT_AUTHOR_EMAIL': 'author@example.org',
            'GIT_COMMITTER_NAME': 'Author',
            'GIT_COMMITTER_EMAIL': 'author@example.org',
        }
        self.clone = self.create_repository()

    def create_repository(self) -> pathlib.Path:
        """Create a repository with two commits and the files that a build reads."""
        repository = self.folder / 'repository'
        junk = shutil.ignore_patterns('__pycache__', '*.pyc', '*.sample')
        repository.mkdir()
        for name in ('bin', 'etc', 'placement'):
            shutil.copytree(ROOT / name, repository / name, ignore=junk)
        for path in ROOT.iterdir():
            if path.suffix in ('.cfg', '.in', '.py', '.rst', '.toml', '.txt'):
                shutil.copy(path, repository)
        self.run_in(repository, 'git', 'init', '--quiet')
        self.run_in(repository, 'git', 'commit', '--quiet', '--allow-empty', '-m', 'first')
        self.run_in(repository, 'git', 'add', '.')
        self.run_in(repository, 'git', 'commit', '--quiet', '-m', 'second')
        return repository

    def run_in(self, folder: pathlib.Path, *command: str, **variables: str) -> str:
        completed = subprocess.run(
            command,
            cwd=folder,
            env=self.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
        )
        self.assertEqual(0, completed.returncode, completed.stdout)
        return completed.stdout

    def version(self, tree: pathlib.Path, **variables: str) -> str:
        """Return the version of the package in a tree; check that it contains all other files."""
        result = self.folder / 'result'
        result.mkdir()
        command = (sys.executable, 'setup.py', '-q', 'egg_info', '--egg-base', str(result))
        self.run_in(tree, *command, **variables)
        (metadata,) = result.iterdir()
        files = set((metadata / 'SOURCES.txt').read_text().splitlines())
        found = email.message_from_string((metadata / 'PKG-INFO').read_text())['Version']
        shutil.rmtree(result)
        self.assertEqual(set(), self.data_files(tree) - files)
        return found

    def data_files(self, tree: pathlib.Path) -> set[str]:
        paths = [*(tree / 'placement').rglob('*'), *(tree / 'placement/db').rglob('*.py')]
        data = {
            path.relative_to(tree).as_posix()
            for path in paths
            if path.suffix in DATA or 'alembic' in path.parts
            if path.is_file() and path.suffix != '.pyc'
        }
        self.assertIn('placement/db/sqlalchemy/alembic.ini', data)
        return {*data, 'bin/placement-api'}

    def declared(self) -> str:
        declarations = configparser.ConfigParser()
        declarations.read(ROOT / 'setup.cfg', encoding='utf-8')
        return declarations['metadata']['version']

    def archive(self, folder: pathlib.Path) -> pathlib.Path:
        """Unpack an archive of the repository, without git data, into a new directory."""
        path = self.folder / 'archive.tar'
        self.run_in(self.clone, 'git', 'archive', '--output', str(path), 'HEAD')
        folder.mkdir(parents=True)
        shutil.unpack_archive(path, folder)
        return folder

    def test_git_determines_the_version(self):
        """A complete clone counts the commits, and a tag is the version."""
        self.assertEqual(f'{self.declared()}.dev1', self.version(self.clone))
        # A source distribution has the version of its build.
        self.run_in(self.clone, sys.executable, 'setup.py', '-q', 'sdist')
        (path,) = (self.clone / 'dist').iterdir()
        shutil.unpack_archive(path, self.folder / 'sdist')
        (tree,) = (self.folder / 'sdist').iterdir()
        self.assertEqual(f'{self.declared()}.dev1', self.version(tree))
        self.run_in(self.clone, 'git', 'tag', self.declared())
        self.assertEqual(self.declared(), self.version(self.clone))

    def test_without_git_data_the_version_is_the_declared_one(self):
        """A shallow clone, an archive, and a clone on a machine without git."""
        shallow = self.folder / 'shallow'
        url = self.clone.as_uri()
        self.run_in(self.folder, 'git', 'clone', '-q', '--depth', '1', url, str(shallow))
        other = self.folder / 'other'
        archive = self.archive(other / 'archive')
        for tree, variables in ((shallow, {}), (archive, {}), (self.clone, {'PATH': ''})):
            self.assertEqual(self.declared(), self.version(tree, **variables), tree)
        # Another repository around an archive is ignored.
        self.run_in(other, 'git', 'init', '--quiet')
        self.run_in(other, 'git', 'commit', '--quiet', '--allow-empty', '-m', 'first')
        self.assertEqual(self.declared(), self.version(archive))

    def test_the_environment_overrides_the_version(self):
        for tree in (self.clone, self.archive(self.folder / 'archive')):
            self.assertEqual('1.2.3', self.version(tree, PBR_VERSION='1.2.3'))
