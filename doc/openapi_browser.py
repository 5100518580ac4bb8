"""The page of the API reference that displays the OpenAPI documents: ``browse.html``.

The reader selects a microversion, and the page displays its document with Swagger UI. The page also
works from disk, where a script cannot request other files. Therefore each document is written
twice: as a YAML file to download, and as a script that contains the text of the YAML file.

This module is an extension of Sphinx.
"""

import html
import json
from pathlib import Path
import re
import shutil
import string
import tempfile
from typing import Any

from api_reference.openapi import files

_ROOT = Path(__file__).resolve().parent.parent
PARTS = _ROOT / 'doc' / 'browser'
SWAGGER_UI = PARTS / 'swagger-ui'
COMBINED = 'placement.yaml'

_NAME = re.compile(r'placement-1\.(\d+)\.yaml')


def microversions(documents: Path) -> list[str]:
    """Return the microversions that have a document, newest first.

    :raises FileNotFoundError: a document is missing
    """
    matches = [match for path in documents.glob('*.yaml') if (match := _NAME.fullmatch(path.name))]
    minors = sorted((int(match[1]) for match in matches), reverse=True)
    if not minors or not (documents / COMBINED).is_file():
        raise FileNotFoundError(f'{documents} does not contain the OpenAPI documents')
    return [f'1.{minor}' for minor in minors]


def write(documents: Path, target: Path, release: str, links: tuple[tuple[str, str], ...]) -> None:
    """Write the page, its parts, and copies of the documents to a directory.

    :param documents: the directory of the YAML files
    :param release: the version of Placement
    :param links: the titles and the URLs of other pages, which the head of the page links
    """
    versions = microversions(documents)
    _write_documents(documents, versions, _empty(target / 'openapi'))
    parts = _empty(target / 'browse')
    sums = SWAGGER_UI / 'SHA256SUMS'
    sources = [PARTS / 'browse.css', PARTS / 'browse.js']
    sources += [path for path in sorted(SWAGGER_UI.iterdir()) if path != sums]
    for path in sources:
        shutil.copyfile(path, parts / path.name)
    template = string.Template((PARTS / 'page.html').read_text(encoding='utf-8'))
    page = template.substitute(
        release=html.escape(release),
        links=_lines(_item(title, url) for title, url in links),
        options=_lines(f'<option value="{version}">{version}</option>' for version in versions),
        downloads=_lines(
            _item(f'placement-{version}.yaml', f'openapi/placement-{version}.yaml', ' download')
            for version in versions
        ),
    )
    (target / 'browse.html').write_text(page, encoding='utf-8')


def _write_documents(documents: Path, versions: list[str], folder: Path) -> None:
    shutil.copyfile(documents / COMBINED, folder / COMBINED)
    for version in versions:
        path = documents / f'placement-{version}.yaml'
        shutil.copyfile(path, folder / path.name)
        text = json.dumps(path.read_text(encoding='utf-8'))
        script = folder / f'placement-{version}.js'
        script.write_text(f'showDocument("{version}", {text});\n', encoding='utf-8')


def _empty(folder: Path) -> Path:
    """Create a directory without the files of an earlier build, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _item(text: str, url: str, attribute: str = '') -> str:
    return f'<li><a href="{html.escape(url)}"{attribute}>{html.escape(text)}</a></li>'


def _lines(elements: Any) -> str:
    return '\n'.join(f'      {element}' for element in elements)


def setup(app: Any) -> dict[str, bool]:
    """Write the page at the end of a build of HTML pages."""
    app.connect('build-finished', _finish)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


def _finish(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != 'html':
        return
    links = app.config.html_context['documents']
    with tempfile.TemporaryDirectory(prefix='placement-openapi-') as documents:
        files.write(Path(documents))
        write(Path(documents), Path(app.outdir), app.config.release, links)
