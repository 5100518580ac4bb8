"""The commands and the configuration for one machine of ``doc/source/install/production.rst``."""

import configparser
from dataclasses import dataclass
from pathlib import Path
import re
import string
import textwrap

PAGE = Path(__file__).resolve().parents[1] / 'doc' / 'source' / 'install' / 'production.rst'

# The page writes commands in these blocks, and everything else in other blocks.
_BLOCK = re.compile(r'^\.\. code-block:: bash\n((?:\n|    .*\n)+)', re.MULTILINE)
_HEADING = re.compile(r'^(.+)\n([=-])\2+$', re.MULTILINE)
_CONFIGURATION = re.compile(
    r'^cat > /etc/placement/placement\.conf <<EOF\n(.+?)^EOF$', re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of shell commands, and the heading of its section."""

    section: str
    commands: str


def blocks() -> list[Block]:
    """Return the blocks of shell commands for one machine, in the order of the page."""
    page = PAGE.read_text().partition('.. _several-machines:')[0]
    headings = [(match.start(), match[1]) for match in _HEADING.finditer(page)]
    return [
        Block(
            section=[title for start, title in headings if start < match.start()][-1],
            commands=textwrap.dedent(match[1]).strip('\n') + '\n',
        )
        for match in _BLOCK.finditer(page)
    ]


def section(title: str) -> str:
    """Return the shell commands of a section of the page."""
    commands = [block.commands for block in blocks() if block.section == title]
    assert commands, f'{PAGE.name} has no commands in a section "{title}"'
    return ''.join(commands)


def configuration(**values: str) -> str:
    """Return the configuration file that the page writes.

    :param values: the values of shell variables, for example ``OS_AUTH_URL``; all other variables
        remain as they are
    """
    match = _CONFIGURATION.search(section('Configuration'))
    assert match, f'{PAGE.name} writes no configuration file'
    return string.Template(match[1]).safe_substitute(values)


def settings() -> configparser.ConfigParser:
    """Return the parsed configuration file that the page writes."""
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read_string(configuration())
    return parsed
