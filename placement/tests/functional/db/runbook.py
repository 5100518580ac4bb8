"""The commands of the documentation, and a shell that executes them on the database of a test."""

from collections.abc import Mapping
import importlib
import os
from pathlib import Path
import re
import shlex
import subprocess
import sys
import textwrap

import placement
from placement.tests import servers

_ROOT = Path(placement.__file__).parents[1]
_HEADING = re.compile(r'^(\S.*)\n([=-])\2+$', re.MULTILINE)
_BLOCK = re.compile(r'^\.\. code-block:: bash\n\n((?:    .*\n|\n)+)', re.MULTILINE)
# The service of a test is not a service of systemd. The test stops and starts it.
_SYSTEMCTL = '#!/bin/sh\necho "$@" >> {folder}/systemctl.log\n'
# The commands on MySQL, whose client programs need not be installed.
MYSQL = {'mariadb': 'mysql', 'mariadb-dump': 'mysqldump --set-gtid-purged=OFF'}
_CLIENT = '#!/bin/sh\nexec {command} "$@"\n'
_MANAGE = '#!/bin/sh\nexec {python} -m placement.cmd.manage "$@"\n'


def source_of(page: str) -> str:
    """Return a page, whose path is given below doc/source."""
    return (_ROOT / 'doc' / 'source' / page).read_text()


def blocks(page: str, section: str) -> list[str]:
    """Return the blocks of shell commands in a section of a page.

    :param page: the path of the page below doc/source
    :raises ValueError: the page has no such section
    """
    source = source_of(page)
    headings = list(_HEADING.finditer(source))
    for number, heading in enumerate(headings):
        if heading[1] == section:
            end = headings[number + 1].start() if number + 1 < len(headings) else len(source)
            found = _BLOCK.findall(source[heading.end() : end])
            return [textwrap.dedent(block) for block in found]
    raise ValueError(f'{page} has no section {section}')


class Shell:
    """Executes commands in a directory, with the database server of the test run as default.

    `placement-manage` is the command of this source tree. `systemctl` only records its arguments.

    :param folder: an empty directory
    :param url: the URL of the database
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        programs = folder / 'bin'
        programs.mkdir()
        for name, text in (('systemctl', _SYSTEMCTL), ('placement-manage', _MANAGE)):
            _write_program(programs / name, text.format(folder=folder, python=sys.executable))
        if servers.engine() == 'mysql':
            packages = importlib.import_module('tools.mysql')
            for name, client in MYSQL.items():
                program, *options = client.split()
                command = shlex.join(map(str, (*packages.command(program), *options)))
                _write_program(programs / name, _CLIENT.format(command=command))
        self._environment = {
            **os.environ,
            'HOME': str(folder),
            'PATH': os.pathsep.join((str(programs), os.environ['PATH'])),
            'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
            'OS_PLACEMENT_DATABASE__CONNECTION': url,
            **(self._server() if servers.ADMIN_URL in os.environ else {}),
        }

    def _server(self) -> dict[str, str]:
        """Make the server of the run the default of its client programs."""
        url = servers.admin_url()
        values = {'host': url.host, 'port': url.port, 'user': url.username}
        if url.get_backend_name() == 'mysql':
            options = ''.join(f'{name}={value}\n' for name, value in values.items())
            (self.folder / '.my.cnf').write_text(f'[client]\n{options}password={url.password}\n')
            return {}
        return {
            **{f'PG{name.upper()}': str(value) for name, value in values.items()},
            'PGPASSWORD': str(url.password),
        }

    def run(self, block: str, replaced: Mapping[str, str] | None = None) -> None:
        """Execute a block of commands; the first command that fails ends the block.

        :param replaced: the texts of the block to replace, each of which the block must contain
        :raises AssertionError: a command failed; the message contains the output
        """
        for old, new in (replaced or {}).items():
            if old not in block:
                raise AssertionError(f'{old!r} is not in the block:\n{block}')
            block = block.replace(old, new)
        completed = subprocess.run(
            ['bash', '-euo', 'pipefail', '-c', block],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if completed.returncode:
            raise AssertionError(f'{block}\n{completed.stdout}\n{completed.stderr}')

    def systemctl(self) -> list[str]:
        """Return the arguments of each call of `systemctl`."""
        log = self.folder / 'systemctl.log'
        return log.read_text().splitlines() if log.exists() else []


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
