"""Build a release of the last commit into ``dist``: ``tox -e release``.

The script builds the source distribution and the wheel in two clones, and fails if the results
differ. It installs the wheel, its dependencies, and uWSGI as ``doc/source/install/production.rst``
does, and lists the installed packages in a CycloneDX document. ``SHA256SUMS`` contains the digests
of all files.
"""

import gzip
import hashlib
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / 'dist'
CHECKSUMS = 'SHA256SUMS'


class DifferenceError(Exception):
    """Two builds of the same commit differ."""


def main() -> int:
    """Build the files of a release; return 1 if two builds differ."""
    with tempfile.TemporaryDirectory(prefix='placement-release-') as name:
        folder = Path(name)
        try:
            built = build_twice(folder, commit_time())
        except DifferenceError as error:
            print(f'release.py: {error}', file=sys.stderr)
            return 1
        (wheel,) = built.glob('*.whl')
        describe(install(folder / 'venv', wheel), built / f'{wheel.stem}.cdx.json')
        (built / CHECKSUMS).write_text(checksums(built))
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(built, DIST)
    print((DIST / CHECKSUMS).read_text(), end='')
    return 0


def commit_time() -> int:
    """Return the time of the last commit in seconds since 1970."""
    command = ('git', '-C', str(ROOT), 'log', '-1', '--format=%ct')
    return int(subprocess.check_output(command, text=True))


def build_twice(folder: Path, seconds: int) -> Path:
    """Build in two clones; return the directory with the files of the first build.

    :param seconds: the time of the files in the archives
    :raises DifferenceError: the builds differ
    """
    first, second = (build(folder / name, seconds) for name in ('first', 'second'))
    if checksums(first) != checksums(second):
        raise DifferenceError(f'two builds differ:\n{checksums(first)}{checksums(second)}')
    return first


def build(folder: Path, seconds: int) -> Path:
    """Build the last commit in a clone below a directory; return the directory of the results."""
    clone, results = folder / 'clone', folder / 'results'
    run('git', 'clone', '--quiet', str(ROOT), str(clone))
    os.environ['SOURCE_DATE_EPOCH'] = str(seconds)
    run(*python('build', '--no-isolation', '--outdir', str(results), str(clone)))
    (source,) = results.glob('*.tar.gz')
    rewrite(source, seconds)
    return results


def rewrite(archive: Path, seconds: int) -> None:
    """Remove everything from a source distribution that depends on the time, machine or user.

    Setuptools applies SOURCE_DATE_EPOCH to wheels, but not to source distributions.
    """
    with tempfile.TemporaryFile() as copy:
        with tarfile.open(archive) as old, tarfile.open(fileobj=copy, mode='w') as new:
            for member in sorted(old.getmembers(), key=lambda member: member.name):
                content = old.extractfile(member) if member.isfile() else None
                new.addfile(_normalized(member, seconds), content)
        copy.seek(0)
        with (
            archive.open('wb') as file,
            gzip.GzipFile(filename='', mode='wb', fileobj=file, mtime=seconds) as packed,
        ):
            shutil.copyfileobj(copy, packed)


def _normalized(member: tarfile.TarInfo, seconds: int) -> tarfile.TarInfo:
    # Setuptools stores fractions of seconds here.
    member.pax_headers = {}
    mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member.replace(mtime=seconds, mode=mode, uid=0, gid=0, uname='root', gname='root')


def install(venv: Path, wheel: Path) -> Path:
    """Install a wheel and uWSGI in a new environment, without pip; return its interpreter.

    :param wheel: a result of `build`
    """
    run(sys.executable, '-m', 'venv', '--without-pip', str(venv))
    interpreter = venv / 'bin' / 'python'
    pip = python('pip', '--python', str(interpreter), 'install', '--quiet')
    constraints = wheel.parents[1] / 'clone' / 'constraints'
    hashed = (*pip, '--require-hashes')
    run(*hashed, '--only-binary', ':all:', '-r', str(constraints / 'service.txt'))
    run(*hashed, '--no-build-isolation', '-r', str(constraints / 'uwsgi.txt'))
    # By name, because the list of packages contains the path of a wheel that is installed by path.
    found = ('--no-index', '--pre', '--find-links', str(wheel.parent))
    run(*pip, '--no-deps', *found, 'openstack-placement')
    return interpreter


def describe(interpreter: Path, document: Path) -> None:
    """Write a CycloneDX document with the packages of an environment."""
    options = ('--output-reproducible', '--output-format', 'JSON', '--output-file', str(document))
    run(*python('cyclonedx_py', 'environment', *options, str(interpreter)))


def checksums(folder: Path) -> str:
    """Return the digests of all files in a directory, in the form of the command `sha256sum`."""
    return ''.join(
        f'{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n'
        for path in sorted(folder.iterdir())
    )


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module in the environment of this script."""
    return (sys.executable, '-m', module, *arguments)


def run(*command: str) -> None:
    """Run a command.

    :raises subprocess.CalledProcessError: the command fails
    """
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)


if __name__ == '__main__':
    # The modes of the files in a wheel depend on the umask.
    os.umask(0o022)
    sys.exit(main())
