"""The search page of the guides, which also searches the API reference and the lines of the log.

The API reference must be built before the guides. At the end of the build of the guides, this
extension of Sphinx adds the pages of the reference to the search index of the guides. Each line in
the table of warnings and errors is an entry of the index.
"""

import json
from pathlib import Path
import re
from typing import Any

# Relative to the directory with the pages of the guides.
REFERENCE = '../../../api-ref/build/html'
LOG_PAGE, LOG_LINES = 'admin/logging', 'lines-of-warnings-and-errors'
_FILE = 'searchindex.js'
_INDEX = re.compile(r'Search\.setIndex\((.+)\)', re.DOTALL)


def merge(guides: dict[str, Any], reference: dict[str, Any]) -> None:
    """Add the pages of the reference to the index of the guides.

    The index of the reference lists no objects: its pages have neither options nor functions.
    """
    offset = len(guides['docnames'])
    guides['docnames'] += [f'{REFERENCE}/{name}' for name in reference['docnames']]
    guides['filenames'] += reference['filenames']
    guides['titles'] += [f'{title} (API reference)' for title in reference['titles']]
    for key in ('terms', 'titleterms'):
        for term, pages in reference[key].items():
            moved = [page + offset for page in _pages(pages)]
            guides[key][term] = [*_pages(guides[key].get(term, [])), *moved]
    for key in ('alltitles', 'indexentries'):
        for text, places in reference[key].items():
            moved_places = [[page + offset, *rest] for page, *rest in places]
            guides[key].setdefault(text, []).extend(moved_places)


def _pages(value: int | list[int]) -> list[int]:
    """Return the numbers of the pages with a term. Sphinx writes a single number without a list."""
    return [value] if isinstance(value, int) else value


def read(folder: Path) -> dict[str, Any]:
    """Return the search index of a built document.

    :raises ValueError: the file does not have the form that Sphinx writes
    """
    match = _INDEX.fullmatch((folder / _FILE).read_text(encoding='utf-8').strip())
    if match is None:
        raise ValueError(f'{folder / _FILE} is not a search index')
    index: dict[str, Any] = json.loads(match[1])
    return index


def setup(app: Any) -> dict[str, bool]:
    """Add the lines of the log; merge the indexes at the end of a build of HTML pages."""
    app.connect('doctree-read', _add_log_lines)
    app.connect('build-finished', _finish)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


def _add_log_lines(app: Any, document: Any) -> None:
    """Make the first cell of each row in the table of warnings and errors an entry of the index."""
    # The test of `merge` imports this module without Sphinx.
    from docutils import nodes
    from sphinx import addnodes

    for section in document.findall(nodes.section) if app.env.docname == LOG_PAGE else ():
        if LOG_LINES not in section['ids']:
            continue
        for row in section.next_node(nodes.tbody).children:
            text = row.next_node(nodes.literal).astext()
            row['ids'].append(nodes.make_id(text))
            # A semicolon would divide the entry. The search lists only main entries before pages.
            entry = ('single', text.replace(';', ','), row['ids'][0], 'main', None)
            row.next_node(nodes.literal).parent.insert(0, addnodes.index(entries=[entry]))


def _finish(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != 'html':
        return
    folder = Path(app.outdir)
    index = read(folder)
    merge(index, read(folder / REFERENCE))
    text = json.dumps(index, separators=(',', ':'), sort_keys=True)
    (folder / _FILE).write_text(f'Search.setIndex({text})', encoding='utf-8')
