"""Write the files of Swagger UI into doc/browser/swagger-ui: ``tox -e swagger-ui``.

The page that displays the OpenAPI documents uses these files (see doc/openapi_browser.py). The
script downloads one version of the npm package `swagger-ui-dist` with npm, compares the package
with its digest, and writes the files and their digests. Run it after a change of `VERSION` and
`INTEGRITY`; ``npm view swagger-ui-dist@VERSION dist.integrity`` prints the digest of a version.
"""

import base64
import hashlib
from pathlib import Path
import shutil
import subprocess
import sys
import tarfile
import tempfile

VERSION = '5.35.0'
INTEGRITY = (
    'sha512-U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAh'
    'w0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ=='
)
# The script, the style sheet, and the licenses of Swagger UI and of the packages in the script.
FILES = (
    'LICENSE',
    'NOTICE',
    'swagger-ui-bundle.js',
    'swagger-ui-bundle.js.LICENSE.txt',
    'swagger-ui.css',
)
TARGET = Path(__file__).resolve().parent.parent / 'doc' / 'browser' / 'swagger-ui'


def main() -> int:
    """Download the package and write its files; return 1 if the package has another digest."""
    with tempfile.TemporaryDirectory(prefix='placement-swagger-ui-') as name:
        package = download(Path(name))
        if (found := integrity(package)) != INTEGRITY:
            print(f'The digest of {package.name} is {found}.', file=sys.stderr)
            return 1
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        unpack(package)
    (TARGET / 'SHA256SUMS').write_text(''.join(digest_line(TARGET / name) for name in FILES))
    print(f'{TARGET}: swagger-ui-dist {VERSION}')
    return 0


def download(folder: Path) -> Path:
    """Download the package with npm into a folder and return the path of its archive."""
    # Unlike `npm install`, `npm pack` runs no scripts of the package and of its dependencies.
    npm = shutil.which('npm') or sys.exit('npm is not installed')
    subprocess.run((npm, 'pack', '--silent', f'swagger-ui-dist@{VERSION}'), cwd=folder, check=True)
    return folder / f'swagger-ui-dist-{VERSION}.tgz'


def integrity(path: Path) -> str:
    """Return the digest of a file in the form that npm uses."""
    return f'sha512-{base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()}'


def unpack(package: Path) -> None:
    """Write the files of the package to the target directory."""
    with tarfile.open(package) as archive:
        for name in FILES:
            member = archive.extractfile(f'package/{name}')
            assert member is not None
            (TARGET / name).write_bytes(member.read())


def digest_line(path: Path) -> str:
    """Return the line of a file that ``sha256sum --check`` reads."""
    return f'{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n'


if __name__ == '__main__':
    sys.exit(main())
