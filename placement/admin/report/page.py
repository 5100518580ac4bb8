"""Renders the page: one HTML file with the style sheet, the scripts, and the data.

The page makes no request. A Content-Security-Policy in the page forbids requests, and allows only
its own style sheet and scripts, which it names by their hashes. All data is either escaped by the
template or part of the JSON document, which the scripts insert as text.
"""

import base64
from collections.abc import Iterable, Iterator
import hashlib
from importlib import resources
import json
from typing import Any, NamedTuple

import jinja2
import markupsafe
import orjson

from placement.admin import audit
from placement.admin.audit.model import CODES
from placement.admin.console import Progress, count, printable
from placement.admin.report import document
from placement.admin.report.contents import Contents, Tree
from placement.admin.report.document import TREES, Document

_ASSETS = resources.files(__package__) / 'assets'
_TEMPLATE, _STYLE = 'page.html.j2', 'style.css'
# In this order, the scripts form one program.
SCRIPTS = ('data', 'elements', 'bands', 'map', 'table', 'parts', 'details', 'main')
# The bands of `bands.js` for a fullness above 0.9, and above 1.
_NEARLY_FULL, _OVER = 5, 6
_MEANINGS = {code.name: code.meaning for code in CODES}
_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; "
    "form-action 'none'"
)


class Fact(NamedTuple):
    """A part of the verdict, which is a link.

    :ivar target: the section that it leads to
    :ivar band: the band of the legend that it selects; None without one
    """

    text: str
    target: str
    band: int | None = None


def render(shown: Contents, progress: Progress) -> bytes:
    """Return the page in UTF-8."""
    style, script = _asset(_STYLE), _program()
    with progress('Rendering', 3) as advance:
        documents = {'data': document.build(shown)}
        advance(1)
        documents['consumers'] = document.consumers(shown)
        advance(1)
        text = _template().render(
            policy=_POLICY.format(script=_source(script), style=_source(style)),
            style=markupsafe.Markup(style),  # noqa: S704 - a file of this package
            script=markupsafe.Markup(script),  # noqa: S704 - files of this package
            documents={id_: _embedded(one) for id_, one in documents.items()},
            shown=shown,
            time=shown.time.strftime('%Y-%m-%d %H:%M:%S UTC'),
            verdict=verdict(shown),
            counts=_counts(shown),
            trees=len(shown.trees),
            limit=TREES,
            headroom=[(printable(one.query), one) for one in shown.headroom],
            findings=[_printable_finding(finding) for finding in shown.findings],
        )
        advance(1)
    return text.encode()


def verdict(shown: Contents) -> Iterator[Fact]:
    """Yield the parts of the verdict; the first ones count hosts and pools as the legend does."""
    enabled = [tree for tree in shown.trees if not tree.disabled]
    over = [tree for tree in enabled if tree.fullness > 1]
    nearly = [tree for tree in enabled if document.NEARLY_FULL < tree.fullness <= 1]
    first = _counted(over)
    text = f'{first[0].upper()}{first[1:]} over capacity'
    yield Fact(text, '#map', _OVER if over else None)
    yield Fact(f'{_counted(nearly)} above 90 %', '#map', _NEARLY_FULL if nearly else None)
    if shown.drains is not None:
        hosts = [drain.fits for drain in shown.drains.values() if not drain.is_pool]
        text = f'{sum(hosts):,} of {count(len(hosts), "host")} can be drained'
        yield Fact(text, '#providers')
    for one in shown.headroom:
        yield Fact(printable(one.verdict), '#headroom')
    found = sum(finding.count for finding in shown.findings)
    yield Fact(count(found, 'finding') if found else 'no findings', '#findings')


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


def _embedded(document: Document) -> markupsafe.Markup:
    """Return JSON without characters that could end its element."""
    try:
        text = orjson.dumps(document).decode()
    except TypeError:  # orjson does not support integers of more than 64 bits
        text = json.dumps(document, separators=(',', ':'))
    for character in '<>&':
        text = text.replace(character, f'\\u{ord(character):04x}')
    return markupsafe.Markup(text)  # noqa: S704 - the loop escapes it


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters['number'] = '{:,}'.format
    return environment.from_string(_asset(_TEMPLATE))


def _counts(shown: Contents) -> dict[str, int]:
    return {
        'Provider trees': len(shown.trees),
        'Providers': len(shown.cloud.providers),
        'Consumers': shown.number_of_consumers,
        'Allocations': shown.cloud.allocations,
        'Projects': len(shown.cloud.projects),
    }


def _printable_finding(finding: audit.Finding) -> dict[str, Any]:
    """Return a finding with its rows as a table."""
    titles = list(dict.fromkeys(title for row in finding.rows for title in row))
    return {
        'code': finding.code,
        'meaning': _MEANINGS.get(finding.code, ''),
        'severity': finding.severity,
        'count': finding.count,
        'titles': list(map(printable, titles)),
        'rows': [[_cell(row.get(title)) for title in titles] for row in finding.rows],
    }


def _cell(value: Any) -> str:
    if value is None:
        return ''
    return printable(value if isinstance(value, str) else orjson.dumps(value, default=str).decode())
