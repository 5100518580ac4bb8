"""Build the documentation: ``tox -e docs``.

Builds the API reference, the guides, and the release notes as HTML, and the manual pages of the
commands, with Sphinx. A build fails if Sphinx prints a warning. If no document is named, the script
builds all documents, checks the links between them, and opens some pages. To build only some
documents, name them as arguments. The guides link to the API reference, which must be built before
them.
"""

import argparse
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent

# Sphinx reads the pages of the first three documents from the directory `source` of the directory
# with the same name, and writes them to `build/html`. The manual pages are pages of `doc`.
DOCUMENTS = ('api-ref', 'doc', 'releasenotes', 'man')
CHECKS = (
    (sys.executable, 'tools/doc_links.py'),
    (sys.executable, '-m', 'tools.doc_pages'),
)


def main() -> int:
    """Build the documents and return 1 if a build or a check failed."""
    parser = argparse.ArgumentParser(description='Build the documentation with Sphinx.')
    parser.add_argument(
        'documents',
        nargs='*',
        metavar='DOCUMENT',
        help=f'document to build, one of: {", ".join(DOCUMENTS)} (default: all)',
    )
    documents = parser.parse_args().documents
    if unknown := set(documents) - set(DOCUMENTS):
        parser.error(f'no such document: {", ".join(sorted(unknown))}')
    commands = [command(name) for name in documents or DOCUMENTS]
    if not documents:
        commands += CHECKS
    statuses = [subprocess.run(words, cwd=ROOT).returncode for words in commands]
    return int(any(statuses))


def command(document: str) -> tuple[str, ...]:
    """Return the command that builds a document; run it in the top directory of the source tree."""
    sphinx = (sys.executable, '-m', 'sphinx', '--fail-on-warning', '--keep-going', '--quiet')
    if document == 'man':
        # The build uses the pages that the build of the guides has read.
        return (*sphinx, '-b', 'man', '-d', 'doc/build/doctrees', 'doc/source', 'doc/build/man')
    return (
        *(*sphinx, '-b', 'html', '--fresh-env', '-d', f'{document}/build/doctrees'),
        *(f'{document}/source', f'{document}/build/html'),
    )


if __name__ == '__main__':
    sys.exit(main())
