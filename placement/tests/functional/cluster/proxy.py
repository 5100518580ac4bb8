"""HAProxy in front of the API processes, and in front of the nodes of the cluster."""

from collections.abc import Callable
from http import server as http_server
import os
from pathlib import Path
import shutil
import subprocess
import tempfile
import threading
from typing import Any

from placement.tests.functional.deployment import haproxy
from placement.tests.waiting import wait_until


class Proxy(haproxy.HAProxy):
    """A private HAProxy process.

    :param configuration: the text of its configuration; the proxy adds an admin socket
    """

    def __init__(self, configuration: str):
        self._folder = Path(tempfile.mkdtemp(prefix='placement-haproxy-'))
        self._socket = self._folder / 'admin'
        path = self._folder / 'haproxy.cfg'
        path.write_text(f'global\n    stats socket {self._socket} level admin\n{configuration}')
        program = shutil.which('haproxy', path=f'{os.environ["PATH"]}:/usr/sbin')
        assert program is not None
        self._log = (self._folder / 'log').open('wb')
        self._process = subprocess.Popen(
            [program, '-db', '-f', path],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        super().__init__(self._socket)
        wait_until(self._socket.exists, 'HAProxy does not start')

    def remove(self) -> None:
        """Stop the proxy and delete its files."""
        self._process.terminate()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def set_state(self, server: str, state: str) -> None:
        """Set the administrative state of ``backend/server``: ready, drain or maint."""
        if response := self.command(f'set server {server} state {state}').strip():
            raise AssertionError(response)

    def server(self, name: str) -> dict[str, str]:
        """Return the statistics of ``backend/server``."""
        return next(row for row in self.rows() if f'{row["pxname"]}/{row["svname"]}' == name)

    def is_up(self, name: str) -> bool:
        """Whether the server is in the pool."""
        return self.server(name)['status'].startswith('UP')

    def wait_until(self, name: str, up: bool) -> None:
        """Wait until a server is in the pool or has left it."""
        wait_until(lambda: self.is_up(name) is up, f'{name}: up is not {up}')

    def restart(self, name: str, *restarted: Any) -> None:
        """Restart what a server of the pool stands for, without requests or connections to it."""
        self.set_state(name, 'drain')
        wait_until(lambda: self.server(name)['scur'] == '0', f'{name} is not idle')
        for one in restarted:
            one.stop()
            one.start()
        # The health checks also examine a drained server.
        wait_until(lambda: self.server(name)['check_status'] == 'L7OK', f'{name} fails its checks')
        self.set_state(name, 'ready')
        self.wait_until(name, up=True)


class _CheckServer(http_server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore that HAProxy closes the connection of a check that takes too long."""


class NodeCheck:
    """Responds to the health checks of HAProxy for one node of the cluster.

    It stands for programs such as clustercheck: HAProxy itself can only see that a server accepts
    connections, which a node outside of the primary component does.

    :param is_synced: whether the node is ready
    """

    def __init__(self, is_synced: Callable[[], bool]):
        class Handler(http_server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if is_synced() else 503)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Do not log."""

        self._server = _CheckServer(('127.0.0.1', 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def remove(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
