"""Build the documentation: ``tox -e docs``.

Builds the guides, the API reference and the release notes with Sphinx. Each build starts from
nothing and fails on any warning. An argument names a single document to build.
"""

import argparse
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent

# The folder of each document. The sources are in `source`, the pages are written to `build/html`.
DOCUMENTS = ('doc', 'api-ref', 'releasenotes')


def main() -> int:
    """Build the documents and return 1 if a build failed."""
    parser = argparse.ArgumentParser(description='Build the documentation with Sphinx.')
    parser.add_argument(
        'documents',
        nargs='*',
        metavar='DOCUMENT',
        help=f'document to build, one of: {", ".join(DOCUMENTS)} (default: all)',
    )
    documents = parser.parse_args().documents or DOCUMENTS
    if unknown := set(documents) - set(DOCUMENTS):
        parser.error(f'no such document: {", ".join(sorted(unknown))}')
    statuses = [subprocess.run(command(name), cwd=ROOT).returncode for name in documents]
    return int(any(statuses))


def command(document: str) -> tuple[str, ...]:
    """Return the command that builds a document; it runs at the top of the source tree."""
    return (
        *(sys.executable, '-m', 'sphinx', '-b', 'html', '--fail-on-warning', '--keep-going'),
        *('--fresh-env', '--quiet', '-d', f'{document}/build/doctrees'),
        *(f'{document}/source', f'{document}/build/html'),
    )


if __name__ == '__main__':
    sys.exit(main())
