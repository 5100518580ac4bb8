"""Check the OpenAPI documents with a second validator: ``tox -e openapi-validate``.

The test suite uses openapi-spec-validator. This script installs Redocly CLI with npm, below
``.tox``, writes all documents to a temporary directory, and runs Redocly CLI on them. It also finds
ambiguous paths, unused components, and examples that violate their schema. It needs Node.js 20.19
or later.
"""

import argparse
import os
from pathlib import Path
import subprocess
import sys
import tempfile

from placement.openapi import files

ROOT = Path(__file__).resolve().parent.parent
VALIDATOR = '@redocly/cli@2.77.0'
_ENVIRONMENT = {
    **os.environ,
    'REDOCLY_TELEMETRY': 'off',
    'REDOCLY_SUPPRESS_UPDATE_NOTICE': 'true',
}
# The microversion selects one of the schemas in `oneOf`, so they can overlap.
_COMBINED = ('--skip-rule', 'no-illogical-composition-keywords')


def main() -> int:
    """Validate all documents; return 1 if a document is invalid."""
    parser = argparse.ArgumentParser(description='Check the OpenAPI documents with Redocly CLI.')
    parser.add_argument(
        '--folder',
        type=Path,
        default=ROOT / '.tox' / 'redocly',
        help='the directory in which npm installs Redocly CLI (default: %(default)s)',
    )
    program = install(parser.parse_args().folder)
    with tempfile.TemporaryDirectory(prefix='placement-openapi-') as folder:
        files.write(Path(folder))
        *others, combined = (str(Path(folder, files.file_name(name))) for name in files.NAMES)
        results = [lint(program, *others), lint(program, *_COMBINED, combined)]
    return int(not all(results))


def install(folder: Path) -> Path:
    """Install Redocly CLI into a directory, and return the path of the program."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error']
    subprocess.run([*command, '--prefix', str(folder), VALIDATOR], check=True)
    return folder / 'node_modules' / '.bin' / 'redocly'


def lint(program: Path, *arguments: str) -> bool:
    """Return whether Redocly CLI finds neither an error nor a warning.

    :param arguments: options and the paths of the documents
    """
    command = [str(program), 'lint', '--extends', 'recommended-strict', *arguments]
    return subprocess.run(command, env=_ENVIRONMENT).returncode == 0


if __name__ == '__main__':
    sys.exit(main())
