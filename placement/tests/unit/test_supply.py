"""The constraints, the release, and the container image."""

import configparser
import gzip
import io
from pathlib import Path
import re
import shlex
import subprocess
import tarfile
import tempfile
from unittest import mock

from oslotest import base
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import placement
from tools import guide, release

ROOT = Path(placement.__file__).parents[1]
# For each file with constraints: the files with its requirements, and the extras of setup.cfg.
CONSTRAINTS = {
    'test': (
        ('requirements', 'test-requirements', 'lint-requirements', 'doc/requirements'),
        ('serve',),
    ),
    'service': (
        ('requirements',),
        ('serve', 'metrics', 'tools', 'mysql', 'postgresql', 'memcached'),
    ),
    'release': (('release-requirements',), ()),
    'uv': (('uv-requirements',), ()),
    'mysqlclient': (('driver-test-requirements',), ('mysqlclient',)),
    'uwsgi': ((), ('uwsgi',)),
    'mod-wsgi': ((), ()),
}
SERVERS = ('uwsgi', 'mod-wsgi')
# The extra of the tests of a profiler.
UNUSED_EXTRAS = {'profiler'}
# A requirement, and its hashes, each in a line of its own.
PIN = re.compile(
    r'^([a-z0-9-]+)==([\w.]+)(?: ; .+?)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n', re.MULTILINE
)
COMMENT = re.compile(r'^ *#.*\n', re.MULTILINE)
SECONDS = 1_700_000_000


def constraints(name: str) -> str:
    """Return the content of a file with constraints, without comments."""
    return COMMENT.sub('', (ROOT / 'constraints' / f'{name}.txt').read_text())


def versions(name: str) -> dict[str, str]:
    """Return the version of each package in a file with constraints."""
    return {match[1]: match[2] for match in PIN.finditer(constraints(name))}


def requirements(name: str) -> list[Requirement]:
    """Return the requirements with lower bounds that a file with constraints fulfils."""
    files, extras = CONSTRAINTS[name]
    settings = configparser.ConfigParser()
    settings.read(ROOT / 'setup.cfg', encoding='utf-8')
    texts = [(ROOT / f'{file}.txt').read_text() for file in files]
    return parsed(*texts, *(settings['extras'][extra] for extra in extras))


def parsed(*texts: str) -> list[Requirement]:
    """Return the requirements in texts with one requirement in each line."""
    lines = [line.partition('#')[0].strip() for text in texts for line in text.splitlines()]
    return [Requirement(line) for line in lines if line]


class ConstraintsTest(base.BaseTestCase):
    def test_all_files_are_known(self) -> None:
        names = {path.stem for path in (ROOT / 'constraints').iterdir()}
        self.assertEqual(set(CONSTRAINTS), names)

    def test_each_package_has_a_version_and_hashes(self) -> None:
        """Nothing else is in a file, for example the address of an index."""
        for name in CONSTRAINTS:
            text = constraints(name)
            self.assertEqual('', PIN.sub('', text).strip(), name)
            packages = re.findall(r'^\S', text, re.MULTILINE)
            self.assertEqual(len(packages), len(versions(name)), name)
            self.assertNotIn('//', (ROOT / 'constraints' / f'{name}.txt').read_text())

    def test_the_versions_fulfil_the_requirements(self) -> None:
        for name in CONSTRAINTS:
            self.assert_fulfilled(requirements(name), versions(name))

    def test_the_versions_of_servers_fulfil_the_requirements(self) -> None:
        servers = parsed((ROOT / 'server-test-requirements.txt').read_text())
        self.assert_fulfilled(
            servers, {k: v for name in SERVERS for k, v in versions(name).items()}
        )

    def assert_fulfilled(self, required: list[Requirement], pinned: dict[str, str]) -> None:
        for requirement in required:
            version = pinned[canonicalize_name(requirement.name)]
            self.assertTrue(requirement.specifier.contains(version), str(requirement))

    def test_all_files_have_the_same_versions(self) -> None:
        tested = versions('test')
        for name in CONSTRAINTS:
            pinned = versions(name)
            expected = {package: tested.get(package, pinned[package]) for package in pinned}
            self.assertEqual(expected, pinned, name)

    def test_every_dependency_of_the_service_was_tested(self) -> None:
        """The tests run with the same versions; uWSGI and drivers have files of their own."""
        untested = versions('service').keys() - versions('test').keys()
        self.assertEqual(set(), untested)

    def test_each_package_has_one_lower_bound(self) -> None:
        """`tox -e lowest` tests the bounds in requirements.txt and test-requirements.txt."""
        settings = configparser.ConfigParser()
        settings.read(ROOT / 'setup.cfg', encoding='utf-8')
        texts = [path.read_text() for path in ROOT.glob('*requirements.txt')]
        bounds: dict[str, str] = {}
        for requirement in parsed(*texts, *settings['extras'].values()):
            bound = str(requirement.specifier)
            self.assertEqual(bound, bounds.setdefault(requirement.name, bound), requirement.name)
        pages = [ROOT / 'README.rst', ROOT / 'tox.ini', *(ROOT / 'doc' / 'source').rglob('*.rst')]
        for path in pages:
            named = re.findall(r'\b([\w.]+)(?: ([\d.]+) or newer|>=([\d.]+\b))', path.read_text())
            for name, *versions in named:
                expected = bounds.get(name, '>=' + ''.join(versions))
                self.assertEqual(expected, '>=' + ''.join(versions), f'{path}: {name}')

    def test_the_classifiers_are_the_tested_versions_of_python(self) -> None:
        settings = configparser.ConfigParser()
        settings.read(ROOT / 'setup.cfg', encoding='utf-8')
        stated = re.findall(r'Python :: 3\.(\d+)', settings['metadata']['classifier'])
        (tested,) = re.findall(r'\[testenv:py{(.+)}\]', (ROOT / 'tox.ini').read_text())
        self.assertEqual(tested, ','.join(f'3{minor}' for minor in stated))
        self.assertEqual(f'>=3.{stated[0]}', settings['metadata']['python_requires'])

    def test_every_extra_can_be_installed(self) -> None:
        settings = configparser.ConfigParser()
        settings.read(ROOT / 'setup.cfg', encoding='utf-8')
        extras = {extra for _, extras in CONSTRAINTS.values() for extra in extras}
        self.assertEqual(set(settings['extras']), extras | UNUSED_EXTRAS)


class ReleaseTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def archive(self, name: str, **values: float | str) -> Path:
        """Write a source distribution whose file has the given metadata."""
        path = self.folder / name
        with tarfile.open(path, 'w:gz') as new:
            member = tarfile.TarInfo('placement/setup.py')
            member.size = 4
            for attribute, value in values.items():
                setattr(member, attribute, value)
            new.addfile(member, io.BytesIO(b'text'))
        release.rewrite(path, SECONDS)
        return path

    def test_source_distributions_do_not_depend_on_time_and_user(self) -> None:
        first = self.archive('first', mtime=1.5, mode=0o600, uid=1000, uname='builder')
        second = self.archive('second', mtime=SECONDS + 1, mode=0o664, gid=5, gname='staff')
        self.assertEqual(first.read_bytes(), second.read_bytes())
        with tarfile.open(first) as written:
            (member,) = written.getmembers()
            self.assertEqual((SECONDS, 0o644, 'root'), (member.mtime, member.mode, member.uname))
            self.assertEqual(b'text', written.extractfile(member).read())
        with gzip.open(first) as packed:
            packed.read(1)
            self.assertEqual(SECONDS, packed.mtime)

    def test_scripts_stay_executable(self) -> None:
        with tarfile.open(self.archive('first', mode=0o700)) as written:
            self.assertEqual(0o755, written.getmembers()[0].mode)

    def test_different_builds_are_refused(self) -> None:
        def build(folder: Path, seconds: int) -> Path:
            folder.mkdir()
            (folder / 'placement.whl').write_text(folder.name)
            return folder

        with mock.patch.object(release, 'build', build):
            self.assertRaisesRegex(
                release.DifferenceError, 'two builds differ', release.build_twice, self.folder, 1
            )

    def test_sha256sum_accepts_the_checksums(self) -> None:
        (self.folder / 'one.whl').write_text('one')
        (self.folder / 'two.tar.gz').write_text('two')
        text = release.checksums(self.folder)
        command = ('sha256sum', '--check', '--strict', '-')
        checked = subprocess.run(
            command, cwd=self.folder, input=text, capture_output=True, text=True
        )
        self.assertEqual('one.whl: OK\ntwo.tar.gz: OK\n', checked.stdout)


class InstallationTest(base.BaseTestCase):
    """pip must refuse files without a known hash wherever it installs dependencies."""

    def test_the_production_guide(self) -> None:
        self.assert_hashed(guide.section('Placement'))

    def test_the_migration_guide(self) -> None:
        page = ROOT / 'doc' / 'source' / 'admin' / 'migration.rst'
        self.assert_hashed(page.read_text())

    def test_the_container_image(self) -> None:
        self.assert_hashed(container())

    def assert_hashed(self, commands: str) -> None:
        calls = re.findall(r'pip install (.+?)(?: &&|\n)', commands.replace('\\\n', ' '))
        dependencies, server, project = [call.split() for call in calls]
        for call, name in ((dependencies, 'service.txt'), (server, 'uwsgi.txt')):
            self.assertIn('--require-hashes', call)
            self.assertEqual(name, call[-1].rpartition('/')[2])
        # Nothing is executed but the build of uWSGI, with the setuptools of the constraints.
        self.assertIn('--only-binary :all:', ' '.join(dependencies))
        self.assertIn('--no-build-isolation', server)
        self.assertIn('--no-deps', project)
        self.assertTrue(project[-1].endswith('.whl') or '--no-build-isolation' in project)


def container() -> str:
    """Return the instructions of the container image, each in one line, without comments."""
    text = (ROOT / 'etc' / 'container' / 'Containerfile').read_text().replace('\\\n', ' ')
    return COMMENT.sub('', text)


class ContainerTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        text = container()
        self.stage = text[: text.rindex('FROM')]
        self.image = text[text.rindex('FROM') :]

    def instructions(self, name: str) -> list[str]:
        """Return the arguments of all instructions of the last stage that have a name."""
        return re.findall(rf'^{name} +(.+)$', self.image, re.MULTILINE)

    def test_the_base_has_no_default(self) -> None:
        """The person who builds the image gives the digest of the base; both stages have it."""
        self.assertTrue(self.stage.startswith('ARG BASE\n'))
        bases = re.findall(r'^FROM (\S+)', self.stage + self.image, re.MULTILINE)
        self.assertEqual(['${BASE}', '${BASE}'], bases)

    def test_the_image_has_no_compiler(self) -> None:
        packages = r'apt-get install -y --no-install-recommends +([\w. -]+?) &&'
        self.assertEqual(
            [['libpython3.11', 'python3']],
            [found.split() for found in re.findall(packages, self.image)],
        )
        self.assertIn(' gcc ', self.stage)
        self.assertEqual(
            ['--from=build /opt/placement /opt/placement'], self.instructions('(?:COPY|ADD)')
        )

    def test_the_user_is_a_number_other_than_root(self) -> None:
        self.assertEqual(['10778:10778'], self.instructions('USER'))
        self.assertIn('useradd --uid 10778 ', self.image)
        self.assertIn('groupadd --gid 10778 ', self.image)
        self.assertRegex(self.image, r'\nUSER (.+\n)*CMD ')
        self.assertNotRegex(self.image[self.image.index('\nUSER ') :], r'\n(RUN|COPY|ADD) ')

    def test_uwsgi_stops_on_the_signal(self) -> None:
        self.assertEqual(['SIGTERM'], self.instructions('STOPSIGNAL'))
        self.assertEqual(
            ['["uwsgi", "--ini", "/etc/placement/uwsgi.ini"]'], self.instructions('CMD')
        )
        ini = (ROOT / 'etc' / 'uwsgi' / 'placement.ini').read_text()
        self.assertIn('\nhook-master-start = unix_signal:15 gracefully_kill_them_all\n', ini)

    def test_the_health_check_is_valid(self) -> None:
        (check,) = self.instructions('HEALTHCHECK')
        (probe,) = re.findall(r'CMD \["python", "-c", +"(.+)"\]', check)
        compile(probe, 'HEALTHCHECK', 'exec')
        self.assertIn(':8778/placement/healthcheck', probe)
        self.assertEqual(['8778'], self.instructions('EXPOSE'))

    def test_the_image_serves_http_without_a_unix_socket(self) -> None:
        (expressions,) = re.findall(r'sed (-e .+) /opt\S+/placement\.ini >', self.image)
        ini = ROOT / 'etc' / 'uwsgi' / 'placement.ini'
        changed = subprocess.check_output(('sed', *shlex.split(expressions), ini), text=True)
        sockets = [line for line in changed.splitlines() if re.match(r'[a-z-]*socket =', line)]
        self.assertEqual(['http-socket = :8778'], sockets)

    def test_the_image_contains_no_secret(self) -> None:
        self.assertNotRegex(self.stage + self.image, '(?i)password|secret|connection')
