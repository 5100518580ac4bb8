"""The administrative socket of HAProxy."""

import csv
from pathlib import Path
import socket

from placement.tests.waiting import wait_until


class HAProxy:
    """The administrative socket of HAProxy."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def command(self, text: str) -> str:
        """Execute a command and return its output."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._path)
            connection.sendall(text.encode() + b'\n')
            return connection.makefile().read()

    def states(self) -> list[str]:
        """Return the state of each server, for example `UP`."""
        return [row['status'] for row in self._servers()]

    def sessions(self) -> list[int]:
        """Return the number of current sessions of each server."""
        return [int(row['scur']) for row in self._servers()]

    def wait_until_up(self, count: int) -> None:
        """Wait until all servers are up.

        :param count: the number of servers
        """
        wait_until(lambda: self.states() == ['UP'] * count)

    def rows(self) -> list[dict[str, str]]:
        """Return the statistics."""
        return list(csv.DictReader(self.command('show stat').removeprefix('# ').splitlines()))

    def _servers(self) -> list[dict[str, str]]:
        return [
            row
            for row in self.rows()
            if row['pxname'] == 'placement' and row['svname'].startswith('api')
        ]
