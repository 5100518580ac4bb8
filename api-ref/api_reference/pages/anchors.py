"""The anchors of the page that once contained the whole reference.

Other sites link to ``index.html#ANCHOR``. A script of this page opens the page with the anchor.
"""

from collections import Counter
import json
from typing import Any

from docutils import nodes

# The former page did not contain the history of the versions.
_NEWER = 'microversions'
# The script has the names of the pages and their anchors before it.
_SCRIPT = """
const anchor = location.hash.slice(1);
const moved = Object.keys(pages).find((page) => pages[page].includes(anchor));
if (moved) {
  location.replace(`${moved}.html#${anchor}`);
}
"""


def pages(env: Any) -> dict[str, list[str]]:
    """Return the anchors of each page that the former one contained.

    An anchor of two pages is omitted.
    """
    names = sorted(env.found_docs - {env.config.root_doc, _NEWER})
    anchors = {name: _anchors(env.get_doctree(name)) for name in names}
    number = Counter(anchor for found in anchors.values() for anchor in found)
    return {
        name: sorted(anchor for anchor in found if number[anchor] == 1)
        for name, found in anchors.items()
    }


def _anchors(document: nodes.document) -> set[str]:
    return {anchor for node in document.findall(nodes.Element) for anchor in node['ids']}


def add_script(app: Any, page: str, _template: str, _context: Any, _document: Any) -> None:
    """Add the script to the first page."""
    if page == app.config.root_doc:
        text = json.dumps(pages(app.env), separators=(',', ':'))
        app.add_js_file(None, body=f'"use strict";\nconst pages = {text};{_SCRIPT}')
