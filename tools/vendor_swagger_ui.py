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
    npm = shutil.which('npm') or sys.exit('npm is not installed')
    with tempfile.TemporaryDirectory(prefix='placement-swagger-ui-') as folder:
        # Unlike `npm install`, `npm pack` runs no scripts of the package and of its dependencies.
        command = (npm, 'pack', '--silent', f'swagger-ui-dist@{VERSION}')
        subprocess.run(command, cwd=folder, check=True)
        package = Path(folder, f'swagger-ui-dist-{VERSION}.tgz')
        digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        if f'sha512-{digest}' != INTEGRITY:
            print(f'The digest of {package.name} is sha512-{digest}.', file=sys.stderr)
            return 1
        with tarfile.open(package) as archive:
            archive.extractall(folder, filter='data')
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        for name in FILES:
            shutil.copyfile(Path(folder, 'package', name), TARGET / name)
    digests = {name: hashlib.sha256((TARGET / name).read_bytes()).hexdigest() for name in FILES}
    lines = (f'{digest}  {name}\n' for name, digest in digests.items())
    (TARGET / 'SHA256SUMS').write_text(''.join(lines))
    print(f'{TARGET}: swagger-ui-dist {VERSION}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
