"""A private memcached on the loopback interface, with or without TLS."""

import contextlib
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import time

import fixtures

from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST


class Memcached(fixtures.Fixture):
    """Starts memcached.

    :param tls: whether clients must use TLS; `authority` is then the file with the certificate
    :param unix: whether the server listens on a Unix socket
    :param arguments: other arguments of memcached
    :ivar address: the value for the option `memcached_servers`
    """

    def __init__(self, *arguments: str, tls: bool = False, unix: bool = False) -> None:
        super().__init__()
        self._arguments = list(arguments)
        self._tls = tls
        self._unix = unix
        self.process: subprocess.Popen[bytes] | None = None

    def _setUp(self) -> None:
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        user = pwd.getpwuid(os.getuid()).pw_name
        self._command = [
            commands.program('memcached'),
            '-u',
            user,
            *self._listen(),
            *self._arguments,
        ]
        if self._tls:
            self.authority = commands.certificate(self.folder)
            files = f'ssl_chain_cert={self.authority},ssl_key={self.authority.with_suffix(".key")}'
            self._command += ['-Z', '-o', files]
        self.addCleanup(self.kill)
        self.start()

    def _listen(self) -> list[str]:
        if self._unix:
            self.address = str(self.folder / 'socket')
            return ['-s', self.address]
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        self.address = f'127.0.0.1:{port}'
        return ['-l', '127.0.0.1', '-p', str(port), '-U', '0']

    def options(self) -> dict[str, object]:
        """Return the options with which a client can use the server, except its address."""
        if self._tls:
            return {'memcache_tls_enabled': True, 'memcache_tls_cafile': str(self.authority)}
        return {}

    def start(self) -> None:
        """Start the server, also again after `kill`."""
        self.process = subprocess.Popen(self._command)
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), self.connect():
                return
            time.sleep(0.05)
        raise AssertionError('memcached did not start')

    def connect(self) -> socket.socket:
        """Return a connection to the server, without TLS."""
        if self._unix:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.settimeout(LONGEST)
                connection.connect(self.address)
            except OSError:
                connection.close()
                raise
            return connection
        host, _, port = self.address.partition(':')
        return socket.create_connection((host, int(port)), LONGEST)

    def counters(self) -> dict[str, int]:
        """Return the counters of the server, which must not require TLS."""
        with self.connect() as connection:
            connection.sendall(b'stats\r\nquit\r\n')
            with connection.makefile('r') as response:
                rows = [line.split() for line in response]
        return {row[1]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdecimal()}

    def kill(self) -> None:
        """Kill the server; its connections end, and new ones are refused."""
        self.process.kill()
        self.process.wait()

    def suspend(self) -> None:
        """Suspend the server: the system accepts connections, but nothing responds."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
