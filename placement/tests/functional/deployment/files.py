"""The files in etc/, with the ports and paths of a test."""

from collections.abc import Mapping
from pathlib import Path
import re
import sys

import placement
from placement.tests.functional.web import commands

ETC = Path(placement.__file__).parents[1] / 'etc'

# A line and the line below it that replaces it if Placement is served without a path prefix.
_ALTERNATIVE = re.compile(r'^.*\n( *)#root (.*)$', re.MULTILINE)


def programs(unit: str) -> dict[str, str]:
    """Return the paths of the programs of a systemd unit, with their values on this machine.

    If uWSGI is not installed, the test is skipped, because systemd accepts no unit whose program
    does not exist.
    """
    paths = {'/opt/placement': sys.prefix}
    uwsgi = '/opt/placement/bin/uwsgi'
    return {uwsgi: commands.program('uwsgi'), **paths} if uwsgi in read(unit, {}) else paths


def read(name: str, values: Mapping[str, str], prefix: str = '/placement') -> str:
    """Return the content of a file in etc/ with replaced values.

    :param name: the path of the file below etc/
    :param values: the texts to replace, each of which the file must contain
    :param prefix: `/placement`, or an empty text to select the lines marked with `#root`
    """
    text = (ETC / name).read_text()
    if not prefix:
        text = without_prefix(text)
    for old, new in values.items():
        if old not in text:
            raise ValueError(f'etc/{name} does not contain {old!r}')
        text = text.replace(old, new)
    return text


def without_prefix(text: str) -> str:
    """Return the content of a file that serves Placement without a path prefix."""
    return _ALTERNATIVE.sub(r'\1\2', text)
