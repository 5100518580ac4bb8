"""Renders the page: one HTML file with the style sheet, the scripts, and the data.

The page makes no request. A Content-Security-Policy in the page forbids requests, and allows only
its own style sheet and scripts, which it names by their hashes. All data is either escaped by the
template or part of the JSON document, which the scripts insert as text.
"""

import base64
from collections.abc import Mapping, Sequence
import hashlib
from importlib import resources
import json
from typing import Any

import jinja2
import markupsafe
import orjson

from placement.admin import audit
from placement.admin.audit.model import CODES
from placement.admin.report.document import TREES, Document
from placement.admin.report.model import Cloud, Origin, Tree
from placement.admin.tables import printable

_ASSETS = resources.files(__package__) / 'assets'
_TEMPLATE, _STYLE = 'page.html.j2', 'style.css'
# In this order, the scripts form one program.
SCRIPTS = (
    'data.js',
    'elements.js',
    'bands.js',
    'map.js',
    'table.js',
    'parts.js',
    'details.js',
    'main.js',
)
_MEANINGS = {code.name: code.meaning for code in CODES}
_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; "
    "form-action 'none'"
)


def render(
    cloud: Cloud,
    trees: Sequence[Tree],
    documents: Mapping[str, Document],
    findings: Sequence[audit.Finding],
    origin: Origin,
) -> str:
    """Return the page.

    :param trees: all trees, the fullest first
    :param documents: the documents for the scripts, by the id of their elements
    """
    style, script = _asset(_STYLE), _program()
    return _template().render(
        policy=_POLICY.format(script=_source(script), style=_source(style)),
        style=markupsafe.Markup(style),  # noqa: S704 - a file of this package
        script=markupsafe.Markup(script),  # noqa: S704 - files of this package
        documents={id_: _embedded(document) for id_, document in documents.items()},
        origin=origin,
        time=origin.time.strftime('%Y-%m-%d %H:%M:%S UTC'),
        counts=_counts(cloud, trees, findings),
        trees=len(trees),
        limit=TREES,
        findings=[_printable_finding(finding) for finding in findings],
    )


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding='utf-8')


def _program() -> str:
    """Return all scripts as one function, so that they add nothing to the global scope."""
    scripts = '\n'.join(_asset(name) for name in SCRIPTS)
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
    environment.filters['number'] = _number
    return environment.from_string(_asset(_TEMPLATE))


def _number(value: int | str) -> str:
    return value if isinstance(value, str) else f'{value:,}'


def _counts(
    cloud: Cloud, trees: Sequence[Tree], findings: Sequence[audit.Finding]
) -> Mapping[str, int | str]:
    counts: dict[str, int | str] = {
        'Provider trees': len(trees),
        'Providers': len(cloud.providers),
        'Consumers': cloud.counts.get('consumers', 0),
        'Allocations': cloud.counts.get('allocations', 0),
        'Projects': cloud.counts.get('projects', 0),
        'Findings': sum(finding.count for finding in findings),
    }
    if cloud.drains is not None:
        fitting = sum(drain.fits for drain in cloud.drains.values())
        counts['N+1'] = f'{fitting:,} of {len(cloud.drains):,}'
    return counts


def _printable_finding(finding: audit.Finding) -> dict[str, Any]:
    """Return a finding with its rows as a table."""
    titles = list(dict.fromkeys(title for row in finding.rows for title in row))
    return {
        'code': finding.code,
        'meaning': _MEANINGS.get(finding.code, ''),
        'severity': finding.severity,
        'count': finding.count,
        'titles': [printable(title) for title in titles],
        'rows': [[_cell(row.get(title)) for title in titles] for row in finding.rows],
    }


def _cell(value: Any) -> str:
    if value is None:
        return ''
    return printable(value if isinstance(value, str) else orjson.dumps(value, default=str).decode())
