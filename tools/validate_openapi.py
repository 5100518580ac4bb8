"""Check the OpenAPI documents with a second validator: ``tox -e openapi-validate``.

The test suite uses openapi-spec-validator. This script writes all documents to a temporary
directory, and runs Redocly CLI on them, which npm installs below ``.tox``. It also finds ambiguous
paths, unused components, and examples that violate their schema. It needs Node.js 20.19 or later.
"""

import os
from pathlib import Path
import subprocess
import sys
import tempfile

from placement.openapi import files

FOLDER = Path(__file__).resolve().parent.parent / '.tox' / 'redocly'
VALIDATOR = '@redocly/cli@2.77.0'
# Without these variables, Redocly CLI connects to its authors.
_ENVIRONMENT = {
    **os.environ,
    'REDOCLY_TELEMETRY': 'off',
    'REDOCLY_SUPPRESS_UPDATE_NOTICE': 'true',
}
# The microversion selects one of the schemas in `oneOf`, so they can overlap.
_COMBINED = ('--skip-rule', 'no-illogical-composition-keywords')


def main() -> int:
    """Validate all documents; return 1 if Redocly CLI finds an error or a warning."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    install = ('npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', FOLDER)
    subprocess.run((*install, VALIDATOR), check=True)
    lint = (FOLDER / 'node_modules' / '.bin' / 'redocly', 'lint', '--extends', 'recommended-strict')
    with tempfile.TemporaryDirectory(prefix='placement-openapi-') as folder:
        files.write(Path(folder))
        *others, combined = (Path(folder, files.file_name(name)) for name in files.NAMES)
        statuses = [
            subprocess.run((*lint, *arguments), env=_ENVIRONMENT).returncode
            for arguments in (others, (*_COMBINED, combined))
        ]
    return int(any(statuses))


if __name__ == '__main__':
    sys.exit(main())
