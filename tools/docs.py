"""Build the documentation: ``tox -e docs``.

Builds the guides, the API reference and the release notes with Sphinx. Each build reads all sources
again and fails if Sphinx prints a warning. To build only some documents, name their directories as
arguments.
"""

import argparse
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent

# The directory of each document. Sphinx reads `source` and writes the pages to `build/html`.
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
    """Return the command that builds a document; run it in the top directory of the source tree."""
    return (
        *(sys.executable, '-m', 'sphinx', '-b', 'html', '--fail-on-warning', '--keep-going'),
        *('--fresh-env', '--quiet', '-d', f'{document}/build/doctrees'),
        *(f'{document}/source', f'{document}/build/html'),
    )


if __name__ == '__main__':
    sys.exit(main())
