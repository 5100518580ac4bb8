"""Check the links in the built documentation: ``python tools/doc_links.py``.

Each link to a local file must lead to an existing file, and its fragment to an element of that
file. If a URL has a query, a script of the page interprets the query and the fragment. No page may
request scripts, styles, or images from other sites. `tools/docs.py` builds the pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
import functools
from html.parser import HTMLParser
from pathlib import Path
import sys
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
DIRECTORIES = ('doc', 'api-ref', 'releasenotes')
# Attributes with URLs that a browser requests when it shows a page.
REQUESTED = frozenset({('link', 'href'), ('script', 'src'), ('img', 'src'), ('object', 'data')})


@dataclass(slots=True)
class Page:
    """The link targets and the URLs of a page."""

    ids: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    requested: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == 'id':
                self.page.ids.add(value)
            elif (tag, name) in REQUESTED:
                self.page.requested.add(value)
            elif (tag, name) == ('a', 'href'):
                self.page.links.add(value)


@functools.cache
def read(path: Path) -> Page:
    """Return the link targets and the URLs of an HTML file."""
    reader = _Reader()
    reader.feed(path.read_text(encoding='utf-8'))
    return reader.page


def problems(path: Path) -> Iterator[str]:
    """Return a sentence for each link of a page that leads nowhere."""
    page = read(path)
    for url in sorted(page.requested):
        if urlsplit(url).netloc:
            yield f'The page requests {url}.'
    for url in sorted(page.links | page.requested):
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = path.parent / unquote(parts.path) if parts.path else path
        if not target.is_file():
            yield f'The file of the link {url} does not exist.'
        elif parts.fragment and not parts.query and unquote(parts.fragment) not in read(target).ids:
            yield f'The fragment of the link {url} does not exist.'


def main() -> int:
    """Check all pages; return 1 if a link leads nowhere, or if a document is not built."""
    checked = failed = 0
    for directory in DIRECTORIES:
        pages = sorted((ROOT / directory / 'build' / 'html').rglob('*.html'))
        if not pages:
            print(f'{directory} is not built')
            failed += 1
        for path in pages:
            checked += 1
            for problem in problems(path):
                print(f'{path.relative_to(ROOT)}: {problem}')
                failed += 1
    print(f'{checked} pages checked, {failed} problems')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
