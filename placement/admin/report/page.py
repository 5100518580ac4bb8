"""Renders the page: one HTML file with the style sheet, the scripts, and the data.

The page makes no request. A Content-Security-Policy in the page forbids requests, and allows only
its own style sheet and scripts, which it names by their hashes. All data is either escaped by the
template or part of the JSON document, which the scripts insert as text.
"""

import base64
from collections.abc import Iterable, Iterator
import hashlib
from importlib import resources
from typing import Any

import jinja2
import orjson

from placement.admin import audit
from placement.admin.audit.model import CODES
from placement.admin.console import count, printable
from placement.admin.report import document
from placement.admin.report.contents import Contents, Tree
from placement.admin.report.document import TREES

_ASSETS = resources.files(__package__) / 'assets'
# In this order, the scripts form one program.
SCRIPTS = ('data', 'elements', 'bands', 'map', 'table', 'parts', 'details', 'main')
# The bands of `bands.js` for a fullness above 0.9, and above 1.
_NEARLY_FULL, _OVER = 5, 6


def render(shown: Contents) -> bytes:
    """Return the page in UTF-8."""
    text = _template().render(
        style=_asset('style.css'),
        script=_program(),
        documents={'data': document.build(shown), 'consumers': document.consumers(shown)},
        shown=shown,
        time=shown.time.strftime('%Y-%m-%d %H:%M:%S UTC'),
        verdict=verdict(shown),
        limit=TREES,
        findings=[(finding, *_table(finding)) for finding in shown.findings],
        codes=CODES,
    )
    return text.encode()


def verdict(shown: Contents) -> Iterator[tuple[str, str, int | None]]:
    """Yield the parts of the verdict; the first ones count hosts and pools as the legend does.

    Each part is a text, the section to which it leads, and the band of the legend that it selects.
    """
    enabled = [tree for tree in shown.trees if not tree.disabled]
    over = [tree for tree in enabled if tree.fullness > 1]
    nearly = [tree for tree in enabled if document.NEARLY_FULL < tree.fullness <= 1]
    first = _counted(over)
    text = f'{first[0].upper()}{first[1:]} over capacity'
    yield text, '#map', _OVER if over else None
    yield f'{_counted(nearly)} above 90 %', '#map', _NEARLY_FULL if nearly else None
    if shown.drains is not None:
        hosts = [drain.fits for drain in shown.drains.values() if not drain.is_pool]
        text = f'{sum(hosts):,} of {count(len(hosts), "host")} can be drained'
        yield text, '#providers', None
    for one in shown.headroom:
        yield printable(one.verdict), '#headroom', None
    found = sum(finding.count for finding in shown.findings)
    yield count(found, 'finding') if found else 'no findings', '#findings', None


def _counted(trees: Iterable[Tree]) -> str:
    """Return the numbers of hosts and pools."""
    pools = [tree.is_pool for tree in trees]
    numbers = {'host': pools.count(False), 'pool': pools.count(True)}
    return ' and '.join(count(n, noun) for noun, n in numbers.items() if n) or 'no host'


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding='utf-8')


def _program() -> str:
    """Return all scripts as one function, so that they add nothing to the global scope."""
    scripts = '\n'.join(_asset(f'{name}.js') for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{scripts}\n}})();\n'


def _source(text: str) -> str:
    """Return the source expression of an inline style sheet or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number='{:,}'.format, printable=printable, source=_source)
    environment.policies['json.dumps_kwargs'] = {'separators': (',', ':')}
    return environment.from_string(_asset('page.html.j2'))


def _table(finding: audit.Finding) -> tuple[list[str], list[list[str]]]:
    """Return the titles and the cells of a table of the rows of a finding."""
    titles = list(dict.fromkeys(title for row in finding.rows for title in row))
    return titles, [[_cell(row.get(title)) for title in titles] for row in finding.rows]


def _cell(value: Any) -> str:
    if value is None:
        return ''
    return printable(value if isinstance(value, str) else orjson.dumps(value, default=str).decode())
