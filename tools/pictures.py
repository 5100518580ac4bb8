"""Draw the pictures of the guides: ``python -m tools.pictures``.

The directory doc/pictures contains one Graphviz source for each picture. This tool first writes the
source of the database schema from the models. It then draws all sources with the program ``dot`` of
Graphviz, and writes the SVG files into the directories of the pages. A build of the documentation
uses these files and does not need Graphviz.

Each SVG file contains a digest of its source. A unit test compares the digest with the source, so a
changed source without a new SVG file is an error.
"""

import hashlib
from pathlib import Path
import re
import subprocess
import sys

from placement.db.sqlalchemy import models
from tools import schema_picture

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / 'doc' / 'pictures'
GUIDES = ROOT / 'doc' / 'source'
SCHEMA = SOURCES / 'schema.dot'
# The directory of the page that shows the picture, by the name of the source.
DIRECTORIES = {
    'claim': 'user',
    'drain': 'admin',
    'generation-race': 'user',
    'layers': 'contributor',
    'reshape': 'user',
    'schema': 'contributor',
    'search-pages': 'contributor',
    'sharing': 'user',
}
# Graphviz measures text with this font. Its widths are those of Arial and Helvetica, which readers
# have, so the text fits into its boxes without a font of the page.
MEASURED_FONT = 'Liberation Sans'
FONTS = 'Arial, Helvetica, Liberation Sans, sans-serif'
# The first statements of every picture. The background is white, so that a picture is readable on a
# dark page.
STYLE = f"""
  graph [bgcolor=white pad=0.1 fontsize=14 fontcolor="#222222" fontname="{MEASURED_FONT}"]
  node [fontsize=14 fontcolor="#222222" fontname="{MEASURED_FONT}" shape=box height=0.3]
  node [style=filled color="#5b6b7b" fillcolor="#eef3f8" margin="0.15,0.07"]
  edge [fontsize=13 fontcolor="#222222" fontname="{MEASURED_FONT}" color="#3d4a57" arrowsize=0.8]
"""


def main() -> None:
    """Write the source of the schema and all SVG files."""
    SCHEMA.write_text(schema_picture.source(models.metadata))
    for name in DIRECTORIES:
        source = (SOURCES / f'{name}.dot').read_text()
        svg_path(name).write_text(svg(name, source))
        print(svg_path(name).relative_to(ROOT))


def svg_path(name: str) -> Path:
    """Return the path of the SVG file of a picture."""
    return GUIDES / DIRECTORIES[name] / f'{name}.svg'


def digest(source: str) -> str:
    """Return a digest of a source and of the attributes of all pictures."""
    return hashlib.sha256('\n'.join((STYLE, FONTS, source)).encode()).hexdigest()


def svg(name: str, source: str) -> str:
    """Return the SVG document of a source.

    :param name: the name of the source, without its suffix
    """
    styled = source.replace('{', f'{{{STYLE}', 1)
    try:
        drawn = subprocess.run(
            ('dot', '-Tsvg'), input=styled, check=True, capture_output=True, text=True
        )
    except FileNotFoundError:
        sys.exit('Error: the program dot is missing. Install the package graphviz.')
    except subprocess.CalledProcessError as error:
        sys.exit(f'Error: {name}.dot: {error.stderr}')
    if drawn.stderr:
        sys.exit(f'Error: {name}.dot: {drawn.stderr}')
    comment = f'<!-- Drawn from doc/pictures/{name}.dot, digest {digest(source)} -->'
    return f'{comment}\n{_normalized(drawn.stdout)}'


def _normalized(text: str) -> str:
    """Return an SVG document without what depends on the version of Graphviz.

    The titles of the elements are the names of the nodes, which a browser would show as tooltips.
    """
    text = text[text.index('<svg') :]
    text = re.sub(r'<!--.*?-->\n?|<title>.*?</title>\n?', '', text, flags=re.DOTALL)
    # One point of Graphviz becomes one pixel of the page, so that the font size is in pixels.
    text = re.sub(r'<svg width="(\d+)pt" height="(\d+)pt"', r'<svg width="\1" height="\2"', text)
    return text.replace(f'font-family="{MEASURED_FONT}"', f'font-family="{FONTS}"')


if __name__ == '__main__':
    main()
