"""The commands and the configuration in the installation guide."""

from collections.abc import Iterator
import configparser
from pathlib import Path
import re
import textwrap

INSTALL = Path(__file__).resolve().parents[1] / 'doc' / 'source' / 'install'

_LITERAL_BLOCK = re.compile(r'::\n\n((?: .*\n|\n)+)')


def literal_blocks(page: str) -> Iterator[str]:
    """Return the texts of the literal blocks of a page, without their indentation."""
    for match in _LITERAL_BLOCK.finditer((INSTALL / page).read_text()):
        yield textwrap.dedent(match[1]).strip() + '\n'


def configuration() -> str:
    """Return the configuration file of the installation guide."""
    (text,) = (block for block in literal_blocks('production.rst') if block.startswith('['))
    return text


def settings() -> configparser.ConfigParser:
    """Return the parsed configuration file of the installation guide."""
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read_string(configuration())
    return parsed
