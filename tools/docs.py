"""Build the documentation: ``python3 tools/docs.py``.

Builds the API reference, the guides, and the release notes as HTML, and the manual pages of the
commands, with Sphinx. If the theme of the pages is not installed, the script first creates a
virtual environment. A build fails if Sphinx prints a warning. To build only some documents, name
them as arguments. The guides link to the API reference, which must be built before them.

If no document is named, the script builds all documents, and checks the links between them. Each
link to a local file must lead to an existing file, and its fragment to an element of that file. If
a URL has a query, a script of the page interprets the query and the fragment. No page may request
scripts, styles, or images from other sites. With ``--browser``, the script also opens pages.
"""

import argparse
from collections.abc import Iterator
import functools
from html.parser import HTMLParser
import importlib.util
import os
from pathlib import Path
import subprocess
import sys
from urllib.parse import unquote, urlsplit

import bootstrap

# Sphinx reads the pages of the first three documents from the directory `source` of the directory
# with the same name, and writes them to `build/html`. The manual pages are pages of `doc`.
DOCUMENTS = ('api-ref', 'doc', 'releasenotes', 'man')
# Attributes with URLs that a browser requests when it shows a page.
REQUESTED = frozenset({('link', 'href'), ('script', 'src'), ('img', 'src'), ('object', 'data')})


def main() -> int:
    """Build the documents and return 1 if a build or a check failed."""
    parser = argparse.ArgumentParser(description='Build the documentation with Sphinx.')
    parser.add_argument(
        'documents',
        nargs='*',
        metavar='DOCUMENT',
        help=f'document to build, one of: {", ".join(DOCUMENTS)} (default: all)',
    )
    parser.add_argument('--browser', action='store_true', help='also open pages in Chromium')
    options = parser.parse_args()
    if unknown := set(options.documents) - set(DOCUMENTS):
        parser.error(f'no such document: {", ".join(sorted(unknown))}')
    if importlib.util.find_spec('openstackdocstheme') is None:
        python = bootstrap.prepare('test')
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    failures = [_fails(command(name)) for name in options.documents or DOCUMENTS]
    if not options.documents:
        failures.append(_has_problems())
    if options.browser:
        failures.append(_fails((sys.executable, '-m', 'tools.doc_pages')))
    return int(any(failures))


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


def _fails(words: tuple[str, ...]) -> bool:
    return subprocess.run(words, cwd=bootstrap.ROOT).returncode != 0


def _has_problems() -> bool:
    """Print the links that lead nowhere, and return whether there is one."""
    folders = [bootstrap.ROOT / document / 'build' / 'html' for document in DOCUMENTS[:3]]
    paths = [path for folder in folders for path in sorted(folder.rglob('*.html'))]
    found = [f'{path}: {problem}' for path in paths for problem in problems(path)]
    print(*found, f'{len(paths)} pages checked, {len(found)} problems', sep='\n')
    return bool(found)


class _Page(HTMLParser):
    """The anchors and the URLs of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.requested: set[str] = set()
        self.feed(path.read_text(encoding='utf-8'))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == 'id':
                self.anchors.add(value or '')
            elif (tag, name) in REQUESTED:
                self.requested.add(value or '')
            elif (tag, name) == ('a', 'href'):
                self.links.add(value or '')


_page = functools.cache(_Page)


def problems(path: Path) -> Iterator[str]:
    """Yield a sentence for each link of a page that leads nowhere."""
    page = _page(path)
    for url in sorted(page.links | page.requested):
        parts = urlsplit(url)
        target = path.parent / unquote(parts.path) if parts.path else path
        if parts.netloc and url in page.requested:
            yield f'The page requests {url}.'
        elif parts.scheme or parts.netloc:
            continue
        elif not target.is_file():
            yield f'The file of the link {url} does not exist.'
        elif (
            parts.fragment
            and not parts.query
            and unquote(parts.fragment) not in _page(target).anchors
        ):
            yield f'The fragment of the link {url} does not exist.'


if __name__ == '__main__':
    sys.exit(main())
